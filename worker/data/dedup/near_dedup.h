// Near deduplication as tasks with files between them.
//
//   SignatureTask (one per part of the input)    texts -> sorted runs of band keys, sketches
//   RunBandTask   (one per band, and one more)   runs of all parts -> pairs of documents that share a band
//   RunClusterTask                               pairs -> clusters; of each, the first document is kept
//   DuplicateReader                              who was dropped, for whom, how similar they are
//
// A part is any piece of the input; parts follow each other in input order, and so documents are numbered. Tasks of one
// kind may run at the same time, in any order, in threads or processes or on hosts that see the same folder; a kind
// starts when all of the kind before are done. A task runs in one place at a time.
//
// A task that was killed starts anew; one that was finished finds its files and does nothing. The result, to the last
// byte, depends on the settings and the texts in their order: not on the memory given, the number of workers, or how
// the input was cut into parts.
//
// Documents shorter than a shingle have no signature. They are duplicates if they are equal byte by byte.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "worker/data/dedup/near_settings.h"
#include "worker/data/dedup/record_lookup.h"
#include "worker/data/dedup/signer.h"
#include "worker/data/spill/external_sort.h"

namespace llmctl::data {

// The same for all tasks of a run.
struct NearPlan {
  NearSettings settings;
  std::string folder;
  // One per part, in input order: whatever changes when the part's texts may have (names, sizes, checksums, ranges).
  std::vector<std::string> part_digests;
};

class NearPartWriter;

// Feeds one part. Single-threaded. On disk, per document: 16 bytes a band for the keys, bands x rows + 8 for the
// sketch, and 4 per distinct shingle where the settings ask for a Jaccard check.
class SignatureTask {
 public:
  // `signer` must outlive it and have the plan's settings.
  static absl::StatusOr<std::unique_ptr<SignatureTask>> Open(const NearPlan& plan, size_t part, const Signer& signer,
                                                             const TaskResources& resources);
  ~SignatureTask();
  SignatureTask(const SignatureTask&) = delete;
  SignatureTask& operator=(const SignatureTask&) = delete;

  // An earlier run has finished this part: no text is needed.
  bool done() const { return writer_ == nullptr; }
  // Valid UTF-8, in input order; an empty one counts as a document too.
  absl::Status Add(absl::string_view text);
  absl::Status Finish();

 private:
  SignatureTask(const Signer& signer, std::unique_ptr<NearPartWriter> writer);

  const Signer& signer_;
  std::unique_ptr<NearPartWriter> writer_;
  Signature signature_;
};

// One per band, and a last one for documents without a signature.
inline int BandTasks(const NearSettings& settings) { return settings.bands + 1; }
absl::Status RunBandTask(const NearPlan& plan, int band, const TaskResources& resources);

struct NearSummary {
  uint64_t documents = 0;
  uint64_t short_documents = 0;  // without a signature
  uint64_t clusters = 0;         // of two documents at least
  uint64_t clustered = 0;        // documents in them
  uint64_t removed = 0;
  uint64_t largest = 0;          // documents of the largest cluster
  uint64_t candidates = 0;       // distinct pairs that were looked at
  uint64_t pairs = 0;            // those left after the Jaccard check
};

// Needs 9/64 bytes per document and 12 bytes per document that is in a pair; ResourceExhausted says how much if that
// is more than it was given.
absl::StatusOr<NearSummary> RunClusterTask(const NearPlan& plan, const TaskResources& resources);

struct Duplicate {
  uint64_t document;
  uint64_t kept;   // the first document of its cluster
  uint64_t match;  // the first document that it was itself found similar to; the others of a cluster may be so by way
                   // of each other alone
  float kept_jaccard;   // exact if the settings ask for a check, else estimated from the sketches
  float match_jaccard;
};
static_assert(sizeof(Duplicate) == 32);

// The result. Single-threaded.
class DuplicateReader {
 public:
  // Reads the file once to verify its checksum.
  static absl::StatusOr<DuplicateReader> Open(const NearPlan& plan, SpillFiles& files);

  const NearSummary& summary() const { return summary_; }
  // The number of the first document of a part.
  uint64_t FirstDocument(size_t part) const { return first_documents_[part]; }
  // What became of a document; nothing if it is kept. In ascending order it reads the file once; any order works.
  absl::StatusOr<std::optional<Duplicate>> Find(uint64_t document);

 private:
  DuplicateReader(RecordFile file, std::vector<uint64_t> first_documents);

  RecordLookup<Duplicate> duplicates_;
  NearSummary summary_;
  std::vector<uint64_t> first_documents_;
  std::vector<Duplicate> found_;
};

}  // namespace llmctl::data
