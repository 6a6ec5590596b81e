// The folder in which a corpus is made, and what is in it.
//
//   clean-<digest>/TTTTTT-SSSS.documents   what task T kept, in segments
//   clean-<digest>/TTTTTT-SSSS.verdicts    what it said of every record
//   clean-<digest>/TTTTTT-SSSS.segment     says that the other two are whole, and what comes next
//   exact-<unit>-<digest>/, near-<digest>/ deduplication
//   tokens-<digest>/TTTTTT-SSSS.*          what is left of a segment, as tokens; TTTTTT-SSSS.losses, what is not
//
// The digest in a folder's name says what its content follows from: another specification or other input makes other
// folders, and what is still true of an earlier run is used again.
//
// When the dataset is made, what `llmctl data explain` needs is kept in the dataset's folder audit/, laid out in the
// same way: verdicts, segments and losses.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "worker/data/dedup/exact_dedup.h"
#include "worker/data/dedup/near_dedup.h"
#include "worker/data/spill/spill_files.h"
#include "worker/data/perplexity/perplexity_filter.h"
#include "worker/data/pipeline/corpus_plan.h"
#include "worker/data/pipeline/tally.h"
#include "worker/data/read/record.h"

namespace llmctl::data {

// How far a task has come: the next piece of its input to read from, and where in it.
struct ResumePoint {
  int64_t piece = 0;
  Position position;
};

struct SegmentFooter {
  bool last = false;  // of its task
  uint64_t documents = 0;  // kept
  uint64_t bytes = 0;      // of their texts
  uint64_t identity = 0;   // of the file with them
  ResumePoint next;   // where the segment after it begins
  // Lines read of each piece that ended in this segment, in order: the lines of a file are counted across its pieces.
  std::vector<int64_t> piece_lines;
  Tally tally;
  PerplexitySketch perplexities;  // of the documents; empty without that stage
};

struct Segment {
  int task = 0;
  int number = 0;
  uint64_t documents = 0;  // kept
  uint64_t bytes = 0;      // of their texts
  uint64_t identity = 0;
};
int64_t TextBytes(const std::vector<Segment>& segments);

class Workspace {
 public:
  // `plan` outlives it.
  Workspace(const CorpusPlan& plan, std::string folder) : plan_(plan), folder_(std::move(folder)) {}

  const CorpusPlan& plan() const { return plan_; }
  const std::string& folder() const { return folder_; }
  // Of the cleaning stages: a segment that is finished stays so, whatever happens.
  SpillFiles& files() const { return files_; }
  // Of the others, which make many files: what they left is synced when they are done (work_journal.h).
  SpillFiles& quick_files() const { return quick_files_; }
  // The folders that hold what a pass of deduplication, or the encoding, leaves.
  std::string DedupFolder(int pass) const;
  std::string TokensFolder() const;

  std::string SegmentPath(const Segment& segment) const;
  std::string DocumentsPath(const Segment& segment) const;
  std::string VerdictsPath(const Segment& segment) const;
  std::string TokensPath(const Segment& segment, absl::string_view ending) const;
  const std::string& clean_digest() const { return plan_.clean_digest; }

  // NotFound if the segment is not finished.
  absl::StatusOr<SegmentFooter> ReadFooter(const Segment& segment) const;
  absl::Status WriteFooter(const Segment& segment, const SegmentFooter& footer) const;
  // All segments in the order of the input. FailedPrecondition if a task is not finished.
  absl::StatusOr<std::vector<Segment>> Segments() const;

  // A pass of exact deduplication; passes are numbered from 0, the one near pass comes after them.
  ExactPlan PlanOfExact(int pass, const std::vector<Segment>& segments) const;
  NearPlan PlanOfNear(const std::vector<Segment>& segments) const;

 private:
  std::string Name(const Segment& segment) const;

  const CorpusPlan& plan_;
  const std::string folder_;
  mutable LocalSpillFiles files_;
  mutable LocalSpillFiles quick_files_{LocalSpillFiles::Durability::kRename};
};

}  // namespace llmctl::data
