// A dataset with its audit, opened for questions.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"

#include "worker/data/pipeline/audit.h"
#include "worker/data/pipeline/corpus_plan.h"
#include "worker/data/pipeline/workspace.h"

namespace llmctl::data {

class AuditedDataset {
 public:
  // NotFound if it was made without an audit.
  static absl::StatusOr<std::unique_ptr<AuditedDataset>> Open(const std::string& dataset);

  const CorpusPlan& plan() const { return plan_; }
  const Workspace& workspace() const { return workspace_; }
  const Audit& audit() const { return *audit_; }

 private:
  AuditedDataset(CorpusPlan plan, const std::string& folder)
      : plan_(std::move(plan)), workspace_(plan_, folder) {}

  const CorpusPlan plan_;
  const Workspace workspace_;
  std::unique_ptr<Audit> audit_;
};

}  // namespace llmctl::data
