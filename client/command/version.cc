#include "absl/strings/str_cat.h"

#include "client/command/builds.h"
#include "client/command/verbs.h"
#include "client/output/table.h"
#include "common/base/status.h"
#include "common/build_id/build_id.h"
#include "llmctl/v1/admin.pb.h"

namespace llmctl::client {
namespace {

// Whoever wants to know the version of llmctl does not want to wait for a coordinator that is not there.
constexpr absl::Duration kPatience = absl::Seconds(1);

absl::Status AskCluster(Session& session, v1::BuildReport& report) {
  LLM_ASSIGN_OR_RETURN(*report.mutable_coordinator(), session.cluster.GetVersion(kPatience));
  LLM_ASSIGN_OR_RETURN(v1::ListNodesReply nodes, ListAllNodes(session));
  for (const v1::Node& node : nodes.nodes()) (*report.mutable_hosts())[node.id()] = node.build_id();
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ExitCode> Version(Session& session) {
  v1::BuildReport report;
  report.set_llmctl(BuildId());
  absl::Status asked = AskCluster(session, report);
  if (session.PrintStructured(report)) return ExitCode::kOk;
  session.out << "llmctl " << report.llmctl() << "\n";
  if (!report.has_coordinator()) {
    session.err << "llmctl: the coordinator's version is not known: " << asked.message() << "\n";
    return ExitCode::kOk;
  }
  BuildUsers users{{report.llmctl(), {"llmctl"}}};
  users[report.coordinator().build_id()].push_back("coordinator");
  for (const auto& [host, build] : report.hosts()) users[build].push_back(host);
  session.out << "coordinator " << report.coordinator().build_id() << ", link protocol "
              << report.coordinator().protocol_version() << ", term " << report.coordinator().term() << "\n";
  session.out << report.hosts_size() << (report.hosts_size() == 1 ? " host" : " hosts") << "\n";
  if (std::string skew = DescribeSkew(users); !skew.empty()) session.out << "skew: " << skew << "\n";
  return ExitCode::kOk;
}

}  // namespace llmctl::client
