// The last stage: shards, manifest and report. One task.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "worker/data/pipeline/stage.h"
#include "worker/data/pipeline/workspace.h"
#include "worker/data/tokenizer/tokenizer.h"

namespace llmctl::data {

inline constexpr char kRejectsName[] = "rejects.jsonl";
inline constexpr char kReportName[] = "report.json";
inline constexpr char kReportPageName[] = "report.html";

// In the work folder: the manifest, which makes the shards a dataset when all else is done.
inline constexpr char kManifestDraftName[] = "manifest.json";

// Into the folder `output`, but for the manifest. `workspace` outlives it.
std::unique_ptr<Stage> MakeWriteStage(const Workspace& workspace, std::vector<Segment> segments,
                                      const Tokenizer& tokenizer, std::string output);

}  // namespace llmctl::data
