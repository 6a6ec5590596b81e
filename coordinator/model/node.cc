#include "coordinator/model/node.h"

#include "absl/strings/str_cat.h"

namespace llmctl {

const char* NodeServiceName(NodeService service) {
  switch (service) {
    case NodeService::kOpen: return "open";
    case NodeService::kCordoned: return "cordoned";
    case NodeService::kDraining: return "draining";
    case NodeService::kDrained: return "drained";
  }
  return "?";
}

bool TakesRanks(const Node& node) { return node.standing.service == NodeService::kOpen; }

std::string WhyNoRanks(const Node& node) {
  if (TakesRanks(node)) return "";
  const NodeStanding& standing = node.standing;
  return standing.service_reason.empty()
             ? NodeServiceName(standing.service)
             : absl::StrCat(NodeServiceName(standing.service), ": ", standing.service_reason);
}

}  // namespace llmctl
