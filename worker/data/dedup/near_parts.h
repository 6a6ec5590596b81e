// The files of the parts of a near deduplication, for the tasks that come after.
//
//   band-keys        runs of (band key, document), a section per band
//   text-keys        runs of keys of documents without a signature
//   sketches         a sketch per document
//   shingles, shingle-starts   shingle sets and where each begins, for the Jaccard check
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "worker/data/dedup/input_parts.h"
#include "worker/data/dedup/near_dedup.h"
#include "worker/data/spill/record_file.h"

namespace llmctl::data {

PartPlace PlaceOfNearPart(const NearPlan& plan, size_t part);
// With an empty digest.
RecordFileType NearFileType(const NearSettings& settings, RecordKind kind);

// Single-threaded.
class NearParts {
 public:
  static absl::StatusOr<NearParts> Open(const NearPlan& plan, SpillFiles& files);

  const InputParts& input() const { return input_; }
  absl::Status ReadSketch(uint64_t document, std::vector<uint8_t>& out);
  absl::Status ReadShingles(uint64_t document, std::vector<uint32_t>& out);

 private:
  using FileKey = std::pair<RecordKind, size_t>;

  NearParts(const NearPlan& plan, SpillFiles& files, InputParts input)
      : settings_(plan.settings), files_(files), input_(std::move(input)) {}
  absl::StatusOr<const RecordFile*> FileOf(RecordKind kind, uint64_t document);

  const NearSettings settings_;
  SpillFiles& files_;
  InputParts input_;
  // Files that are read here and there, a few open at a time.
  std::map<FileKey, std::unique_ptr<RecordFile>> open_;
  std::deque<FileKey> open_order_;
};

}  // namespace llmctl::data
