// Exact deduplication of documents, paragraphs or lines as tasks with files between them; the rules for tasks, parts
// and restarts are those of near_dedup.h.
//
//   KeyTask (one per part of the input)   texts -> sorted runs of 128-bit hashes
//   RunRangeTask (one per range of keys)  runs of all parts -> repeats within the range
//   RunRepeatTask                         repeats of all ranges, in the order of the documents
//   RepeatReader                          which units of a document are repeats, and of what
//
// The first unit of equal ones in input order is kept. 32 bytes of disk per unit, in files only: what memory is given
// decides how many runs there are, not what comes out.
#pragma once

#include <compare>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "worker/data/dedup/record_lookup.h"
#include "worker/data/dedup/text_units.h"
#include "worker/data/spill/external_sort.h"

namespace llmctl::data {

struct ExactSettings {
  TextUnit unit = TextUnit::kDocument;
  // Shorter units are never compared: a lone brace or "Yes." is no copy of another. Documents: 0, all count.
  int64_t bytes_min = 0;
};

absl::Status Validate(const ExactSettings& settings);

struct ExactPlan {
  ExactSettings settings;
  std::string folder;
  // One per part, in input order: whatever changes when the part's texts may have.
  std::vector<std::string> part_digests;
};

class ExactPartWriter;

// Feeds one part. Single-threaded.
class KeyTask {
 public:
  static absl::StatusOr<std::unique_ptr<KeyTask>> Open(const ExactPlan& plan, size_t part,
                                                       const TaskResources& resources);
  ~KeyTask();
  KeyTask(const KeyTask&) = delete;
  KeyTask& operator=(const KeyTask&) = delete;

  // An earlier run has finished this part: no text is needed.
  bool done() const { return writer_ == nullptr; }
  absl::Status Add(absl::string_view text);
  absl::Status Finish();

 private:
  explicit KeyTask(std::unique_ptr<ExactPartWriter> writer);

  std::unique_ptr<ExactPartWriter> writer_;
};

constexpr int kRangeTasks = 16;
absl::Status RunRangeTask(const ExactPlan& plan, int range, const TaskResources& resources);

struct ExactSummary {
  uint64_t documents = 0;
  uint64_t units = 0;    // that were compared
  uint64_t repeats = 0;  // of them
};

absl::StatusOr<ExactSummary> RunRepeatTask(const ExactPlan& plan, const TaskResources& resources);

struct Repeat {
  uint64_t document;
  uint64_t unit;
  uint64_t first_document;
  uint64_t first_unit;

  auto operator<=>(const Repeat&) const = default;
};

// The result. Single-threaded.
class RepeatReader {
 public:
  // Reads the file once to verify its checksum.
  static absl::StatusOr<RepeatReader> Open(const ExactPlan& plan, SpillFiles& files);

  const ExactSummary& summary() const { return summary_; }
  // The number of the first document of a part.
  uint64_t FirstDocument(size_t part) const { return first_documents_[part]; }
  // Appends the repeats of a document, in the order of its units. In ascending order of documents it reads the file
  // once; any order works.
  absl::Status Find(uint64_t document, std::vector<Repeat>& out);

 private:
  RepeatReader(RecordFile file, std::vector<uint64_t> first_documents);

  RecordLookup<Repeat> repeats_;
  ExactSummary summary_;
  std::vector<uint64_t> first_documents_;
};

}  // namespace llmctl::data
