#include "worker/contract/collective_ring.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "common/base/file.h"
#include "common/base/status.h"

namespace llmctl::contract {

absl::StatusOr<std::vector<RingRecord>> ReadRing(const std::string& path) {
  LLM_ASSIGN_OR_RETURN(std::string bytes, ReadFile(path));
  const RingHeader expected;
  RingHeader header;
  if (bytes.size() < sizeof(header)) {
    return absl::DataLossError(absl::StrCat("ring file ", path, ": ", bytes.size(), " bytes are less than a header"));
  }
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (std::memcmp(header.magic, expected.magic, sizeof(header.magic)) != 0 ||
      header.record_bytes != sizeof(RingRecord) || header.capacity > bytes.size() ||
      bytes.size() != RingFileBytes(header.capacity)) {
    return absl::DataLossError(absl::StrCat("ring file ", path, ": not a ring of this version"));
  }
  std::vector<RingRecord> records;
  for (uint64_t i = 0; i < header.capacity; ++i) {
    RingRecord record;
    std::memcpy(&record, bytes.data() + sizeof(header) + i * sizeof(record), sizeof(record));
    if (record.sequence == 0) continue;
    // Read while it is being written, or damaged: the texts must end all the same.
    for (auto [text, size] : {std::pair(record.group, sizeof record.group),
                              std::pair(record.operation, sizeof record.operation),
                              std::pair(record.site, sizeof record.site),
                              std::pair(record.detail, sizeof record.detail)}) {
      text[size - 1] = '\0';
    }
    records.push_back(record);
  }
  std::sort(records.begin(), records.end(),
            [](const RingRecord& a, const RingRecord& b) { return a.sequence < b.sequence; });
  return records;
}

}  // namespace llmctl::contract
