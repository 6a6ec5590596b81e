// What a signature task writes: runs of band keys whenever the memory is full, sketches and shingle sets as they come.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "worker/data/dedup/input_parts.h"
#include "worker/data/dedup/near_dedup.h"
#include "worker/data/dedup/signer.h"
#include "worker/data/dedup/sorted_records.h"
#include "worker/data/spill/external_sort.h"
#include "worker/data/spill/record_file.h"

namespace llmctl::data {

class NearPartWriter {
 public:
  NearPartWriter(const NearPlan& plan, size_t part, const TaskResources& resources);

  // Removes what an earlier run left of the part.
  absl::Status Start();
  absl::Status Add(const Signer& signer, absl::string_view text, Signature& signature);
  absl::Status Finish();

 private:
  absl::StatusOr<RecordFileWriter> CreateFile(RecordKind kind, uint64_t run);
  absl::Status AddKeys(const Signer& signer, absl::string_view text, const Signature& signature);
  absl::Status AddSet(Signature& signature);
  absl::Status Spill();
  absl::Status SpillShort();
  absl::Status List(RecordKind kind, uint64_t run, RecordFileWriter& file);

  const NearSettings settings_;
  const PartPlace place_;
  const TaskResources resources_;
  const size_t run_documents_;

  std::vector<std::vector<KeyedDocument>> keys_;  // per band
  std::vector<TextKey> short_keys_;
  std::optional<RecordFileWriter> sketches_;
  std::optional<RecordFileWriter> shingles_;
  std::optional<RecordFileWriter> starts_;
  std::vector<uint8_t> sketch_;

  std::vector<ListedFile> files_;  // finished ones
  uint64_t key_runs_ = 0;
  uint64_t short_runs_ = 0;
  uint64_t shingle_count_ = 0;
  PartCounts counts_;
};

}  // namespace llmctl::data
