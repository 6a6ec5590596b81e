// The stage that reads: input -> documents that were kept, and a verdict for every record (workspace.h).
#pragma once

#include <memory>

#include "absl/status/statusor.h"

#include "worker/data/pipeline/stage.h"
#include "worker/data/pipeline/workspace.h"

namespace llmctl::data {

// `workspace` outlives it.
absl::StatusOr<std::unique_ptr<Stage>> MakeCleanStage(const Workspace& workspace);

}  // namespace llmctl::data
