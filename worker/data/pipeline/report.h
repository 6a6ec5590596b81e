// What became of a corpus, for people and programs.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>
#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "worker/data/dedup/exact_dedup.h"
#include "worker/data/dedup/near_dedup.h"
#include "worker/data/pipeline/encode_stage.h"
#include "worker/data/pipeline/tally.h"
#include "worker/data/pipeline/workspace.h"

namespace llmctl::data {

struct CorpusReport {
  std::string name;
  int64_t files = 0;
  int64_t input_bytes = 0;  // as the files lie there
  std::vector<std::string> passed_over;
  Tally tally;  // of all stages
  std::map<std::string, GroupTokens> groups;
  std::vector<std::pair<std::string, ExactSummary>> exact;  // by unit
  std::vector<NearSummary> near;                            // none or one
};

// Adds up what the tasks have counted.
absl::StatusOr<CorpusReport> MakeReport(const Workspace& workspace, const std::vector<Segment>& segments);

nlohmann::json ReportJson(const CorpusReport& report);
// One page without scripts or references to elsewhere.
std::string ReportHtml(const CorpusReport& report);

}  // namespace llmctl::data
