// The stages of deduplication, over segments.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "worker/data/pipeline/stage.h"
#include "worker/data/pipeline/workspace.h"

namespace llmctl::data {

enum class DedupStep {
  kKeys,    // exact: keys; near: signatures. A task: a segment
  kSpread,  // exact: ranges; near: bands. A task: a range or band
  kResult,  // exact: repeats; near: clusters. One task
};

// `pass` counts from 0; the near pass is the last. The workspace outlives the stage.
absl::StatusOr<std::unique_ptr<Stage>> MakeDedupStage(const Workspace& workspace, std::vector<Segment> segments,
                                                      int pass, DedupStep step);

}  // namespace llmctl::data
