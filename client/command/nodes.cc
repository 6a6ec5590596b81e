#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "client/command/verbs.h"
#include "client/output/figures.h"
#include "client/output/table.h"
#include "common/base/status.h"

namespace llmctl::client {
namespace {

std::string DeviceText(const v1::Node& node) {
  if (node.devices().empty()) return "none";
  const v1::Device& first = node.devices(0);
  return absl::StrCat(node.devices_size(), " x ", first.model().empty() ? first.kind() : first.model());
}

std::string JobText(const v1::Node& node) {
  std::set<std::string> jobs;
  for (const auto& [device, job] : node.jobs_by_device()) jobs.insert(job);
  return absl::StrJoin(jobs, ", ");
}

}  // namespace

absl::StatusOr<ExitCode> Nodes(Session& session) {
  v1::ListNodesRequest request;
  v1::ListNodesReply all;
  do {
    LLM_ASSIGN_OR_RETURN(v1::ListNodesReply page, session.cluster.ListNodes(request));
    all.mutable_nodes()->MergeFrom(page.nodes());
    all.set_revision(page.revision());
    request.set_page_token(page.next_page_token());
  } while (!request.page_token().empty());
  if (session.PrintStructured(all)) return ExitCode::kOk;
  Table table({"NODE", "STATE", "DEVICES", "FREE", "JOBS", "ADDRESS", "LAST SEEN"});
  for (const v1::Node& node : all.nodes()) {
    table.AddRow({node.id(), node.state(), DeviceText(node),
                  absl::StrCat(node.devices_size() - node.jobs_by_device_size()), JobText(node), node.address(),
                  node.has_last_seen() ? FormatTime(node.last_seen().seconds()) : ""});
  }
  session.out << table.ToText();
  return ExitCode::kOk;
}

}  // namespace llmctl::client
