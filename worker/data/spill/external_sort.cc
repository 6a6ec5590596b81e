#include "worker/data/spill/external_sort.h"

namespace llmctl::data {

absl::Status Validate(const TaskResources& resources) {
  if (resources.memory_bytes >= kTaskMemoryMin) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("sorting: a task needs at least ", kTaskMemoryMin,
                                                 " bytes of memory for records, it was given ",
                                                 resources.memory_bytes));
}

absl::StatusOr<RecordFile> OpenRun(SpillFiles& files, const SortedRun& run) {
  LLM_ASSIGN_OR_RETURN(RecordFile file, RecordFile::Open(files, run.path, run.type));
  if (run.identity != 0 && file.identity() != run.identity) {
    return file.Damaged("it is not the file that its part was finished with");
  }
  if (run.section >= file.sections().size()) return file.Damaged(absl::StrCat("it has no section ", run.section));
  return file;
}

}  // namespace llmctl::data
