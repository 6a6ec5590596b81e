#include <utility>

#include "common/base/status.h"
#include "worker/data/dedup/near_parts.h"
#include "worker/data/dedup/near_results.h"

namespace llmctl::data {

absl::StatusOr<DuplicateReader> DuplicateReader::Open(const NearPlan& plan, SpillFiles& files) {
  LLM_ASSIGN_OR_RETURN(NearParts parts, NearParts::Open(plan, files));
  LLM_ASSIGN_OR_RETURN(RecordFile file, RecordFile::Open(files, near_result::ClusterFolder(plan) + "/duplicates",
                                                         near_result::DuplicateType(plan, parts)));
  DuplicateReader reader(std::move(file), parts.input().first_documents());
  LLM_RETURN_IF_ERROR(reader.duplicates_.Verify());
  return reader;
}

DuplicateReader::DuplicateReader(RecordFile file, std::vector<uint64_t> first_documents)
    : duplicates_(std::move(file)),
      summary_(near_result::SummaryOf(duplicates_.file().notes())),
      first_documents_(std::move(first_documents)) {}

absl::StatusOr<std::optional<Duplicate>> DuplicateReader::Find(uint64_t document) {
  found_.clear();
  LLM_RETURN_IF_ERROR(duplicates_.Find(document, found_));
  if (found_.empty()) return std::nullopt;
  return found_.front();
}

}  // namespace llmctl::data
