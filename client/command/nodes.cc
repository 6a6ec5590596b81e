#include <chrono>
#include <set>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"

#include "client/command/builds.h"
#include "client/command/verbs.h"
#include "client/output/fields.h"
#include "client/output/figures.h"
#include "client/output/table.h"
#include "common/base/instant.h"
#include "common/base/status.h"
#include "llmctl/v1/admin.pb.h"

namespace llmctl::client {
namespace {

constexpr absl::Duration kVersionPatience = absl::Seconds(1);
// What a host has after the deadline of a drain: ranks are killed and confirmed, or the host has a problem.
constexpr absl::Duration kDrainPatience = absl::Minutes(1);
constexpr absl::Duration kDrainDefault = absl::Minutes(5);
constexpr absl::Duration kPoll = absl::Milliseconds(200);

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

// "ready", "lost, drained"
std::string StateText(const v1::Node& node) {
  if (node.service().empty() || node.service() == "open") return node.state();
  return absl::StrCat(node.state(), ", ", node.service());
}

std::string SeenText(const v1::Node& node) {
  return node.has_last_seen() ? FormatTime(node.last_seen().seconds()) : "";
}

// One line for a person, or the whole node.
ExitCode PrintNode(const v1::Node& node, Session& session) {
  if (session.PrintStructured(node)) return ExitCode::kOk;
  session.out << node.id() << " " << StateText(node);
  if (!node.service_reason().empty()) session.out << ": " << node.service_reason();
  session.out << "\n";
  return ExitCode::kOk;
}

absl::StatusOr<v1::Node> AwaitDrained(const std::string& id, absl::Duration patience, Session& session) {
  absl::Duration end = Now().monotonic + patience;
  v1::GetNodeRequest request;
  request.set_id(id);
  while (true) {
    LLM_ASSIGN_OR_RETURN(v1::Node node, session.cluster.GetNode(request));
    if (node.service() == "drained") return node;
    if (node.service() != "draining") {
      return absl::AbortedError(absl::StrCat("drain node ", id, ": somebody else made it ", node.service()));
    }
    if (Now().monotonic > end) {
      return absl::FailedPreconditionError(absl::StrCat("drain node ", id, ": not empty after ",
                                                        absl::FormatDuration(patience), ": ", node.service_reason(),
                                                        "; the drain goes on, look at the host"));
    }
    std::this_thread::sleep_for(absl::ToChronoMilliseconds(kPoll));
  }
}

}  // namespace

absl::StatusOr<v1::ListNodesReply> ListAllNodes(Session& session) {
  v1::ListNodesRequest request;
  v1::ListNodesReply all;
  do {
    LLM_ASSIGN_OR_RETURN(v1::ListNodesReply page, session.cluster.ListNodes(request));
    all.mutable_nodes()->MergeFrom(page.nodes());
    all.set_revision(page.revision());
    request.set_page_token(page.next_page_token());
  } while (!request.page_token().empty());
  return all;
}

absl::StatusOr<ExitCode> ListNodes(Session& session) {
  LLM_ASSIGN_OR_RETURN(v1::ListNodesReply all, ListAllNodes(session));
  if (session.PrintStructured(all)) return ExitCode::kOk;
  Table table({"NODE", "STATE", "DEVICES", "FREE", "JOBS", "ADDRESS", "BUILD", "LAST SEEN", "REASON"});
  BuildUsers users;
  for (const v1::Node& node : all.nodes()) {
    table.AddRow({node.id(), StateText(node), DeviceText(node),
                  absl::StrCat(node.devices_size() - node.jobs_by_device_size()), JobText(node), node.address(),
                  node.build_id(), SeenText(node), node.service_reason()});
    users[node.build_id()].push_back(node.id());
  }
  session.out << table.ToText();
  // A coordinator that is too old to tell its build is older than any that does.
  absl::StatusOr<v1::VersionReply> coordinator = session.cluster.GetVersion(kVersionPatience);
  if (coordinator.ok()) users[coordinator->build_id()].push_back("coordinator");
  if (std::string skew = DescribeSkew(users); !skew.empty()) session.out << "skew: " << skew << "\n";
  return ExitCode::kOk;
}

absl::StatusOr<ExitCode> GetNode(const NodeOptions& options, Session& session) {
  v1::GetNodeRequest request;
  request.set_id(options.node);
  LLM_ASSIGN_OR_RETURN(v1::Node node, session.cluster.GetNode(request));
  if (session.PrintStructured(node)) return ExitCode::kOk;
  PrintFields({{"node", node.id()},
               {"state", StateText(node)},
               {"reason", node.service_reason()},
               {"address", node.address()},
               {"devices", DeviceText(node)},
               {"jobs", JobText(node)},
               {"agent", absl::StrCat("build ", node.build_id(), ", start ", node.incarnation())},
               {"boot", node.boot_id()},
               {"last seen", SeenText(node)}},
              session.out);
  return ExitCode::kOk;
}

absl::StatusOr<ExitCode> CordonNode(const NodeOptions& options, Session& session) {
  v1::CordonNodeRequest request;
  request.set_id(options.node);
  request.set_reason(options.reason);
  LLM_ASSIGN_OR_RETURN(v1::Node node, session.cluster.CordonNode(request));
  return PrintNode(node, session);
}

absl::StatusOr<ExitCode> UncordonNode(const NodeOptions& options, Session& session) {
  v1::UncordonNodeRequest request;
  request.set_id(options.node);
  LLM_ASSIGN_OR_RETURN(v1::Node node, session.cluster.UncordonNode(request));
  return PrintNode(node, session);
}

absl::StatusOr<ExitCode> DrainNode(const NodeOptions& options, Session& session) {
  v1::DrainNodeRequest request;
  request.set_id(options.node);
  request.set_reason(options.reason);
  bool given = options.deadline != absl::InfiniteDuration();
  if (given) request.set_deadline_ms(absl::ToInt64Milliseconds(options.deadline));
  LLM_ASSIGN_OR_RETURN(v1::Node node, session.cluster.DrainNode(request));
  if (options.wait) {
    absl::Duration patience = (given ? options.deadline : kDrainDefault) + kDrainPatience;
    LLM_ASSIGN_OR_RETURN(node, AwaitDrained(options.node, patience, session));
  }
  return PrintNode(node, session);
}

}  // namespace llmctl::client
