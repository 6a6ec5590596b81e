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

const char* NodeTrustName(NodeTrust trust) {
  switch (trust) {
    case NodeTrust::kTrusted: return "trusted";
    case NodeTrust::kQuarantined: return "quarantined";
    case NodeTrust::kBurnIn: return "burn-in";
    case NodeTrust::kParole: return "parole";
  }
  return "?";
}

bool TakesRanks(const Node& node) {
  const NodeStanding& standing = node.standing;
  bool trusted = standing.trust == NodeTrust::kTrusted || standing.trust == NodeTrust::kParole;
  return standing.service == NodeService::kOpen && trusted;
}

std::string WhyNoRanks(const Node& node) {
  if (TakesRanks(node)) return "";
  const NodeStanding& standing = node.standing;
  bool closed = standing.service != NodeService::kOpen;
  const char* name = closed ? NodeServiceName(standing.service) : NodeTrustName(standing.trust);
  const std::string& reason = closed ? standing.service_reason : standing.quarantine_reason;
  return reason.empty() ? name : absl::StrCat(name, ": ", reason);
}

}  // namespace llmctl
