#include "worker/data/command/audited_dataset.h"

#include <utility>

#include "common/base/file.h"
#include "common/base/status.h"

namespace llmctl::data {

absl::StatusOr<std::unique_ptr<AuditedDataset>> AuditedDataset::Open(const std::string& dataset) {
  std::string folder = dataset + "/audit";
  absl::StatusOr<std::string> text = ReadFile(folder + "/plan.json");
  if (!text.ok()) {
    return Annotate(text.status(), "dataset ", dataset, " (one that `llmctl data prepare` has made has an audit/)");
  }
  LLM_ASSIGN_OR_RETURN(CorpusPlan plan, DecodeCorpusPlan(*text, folder + "/plan.json"));
  std::unique_ptr<AuditedDataset> out(new AuditedDataset(std::move(plan), folder));
  LLM_ASSIGN_OR_RETURN(Audit audit, Audit::Open(out->workspace_));
  out->audit_ = std::make_unique<Audit>(std::move(audit));
  return out;
}

}  // namespace llmctl::data
