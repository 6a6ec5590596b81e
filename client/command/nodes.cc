#include <chrono>
#include <set>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
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

// "ready", "lost, drained", "ready, burn-in"
std::string StateText(const v1::Node& node) {
  std::string text = node.state();
  if (!node.service().empty() && node.service() != "open") absl::StrAppend(&text, ", ", node.service());
  if (!node.trust().empty() && node.trust() != "trusted") absl::StrAppend(&text, ", ", node.trust());
  return text;
}

std::string ReasonText(const v1::Node& node) {
  std::vector<std::string> reasons;
  for (const std::string& reason : {node.refused(), node.service_reason(), node.trust_reason()}) {
    if (!reason.empty()) reasons.push_back(reason);
  }
  return absl::StrJoin(reasons, "; ");
}

std::string StrikeText(const v1::Node& node) {
  return node.strike_score() < 0.05 ? "" : absl::StrFormat("%.1f", node.strike_score());
}

// "passed 2026-05-01T09:30:00Z", "failed: disk: ..."
std::string PreflightText(const v1::Node& node) {
  if (!node.has_preflight()) return node.preflight_pending() ? "pending" : "";
  const v1::Preflight& found = node.preflight();
  return absl::StrCat(found.passed() ? "passed " : absl::StrCat("failed: ", found.failure(), ", "),
                      FormatTime(found.time().seconds()), node.preflight_pending() ? ", another is pending" : "");
}

void PrintChecks(const v1::Preflight& found, std::ostream& out) {
  Table table({"CHECK", "OUTCOME", "FIGURE", "SECONDS", "DETAIL"});
  for (const v1::PreflightCheck& check : found.checks()) {
    std::string figure = check.value() > 0 ? absl::StrFormat("%.1f %s", check.value(), check.unit()) : "";
    table.AddRow({check.name(), check.outcome(), figure, absl::StrFormat("%.2f", check.seconds()), check.detail()});
  }
  out << "\n" << table.ToText();
}

std::string SeenText(const v1::Node& node) {
  return node.has_last_seen() ? FormatTime(node.last_seen().seconds()) : "";
}

// One line for a person, or the whole node.
ExitCode PrintNode(const v1::Node& node, Session& session) {
  if (session.PrintStructured(node)) return ExitCode::kOk;
  session.out << node.id() << " " << StateText(node);
  if (std::string reason = ReasonText(node); !reason.empty()) session.out << ": " << reason;
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

// "2 (120 MiB)"
std::string StandbyText(const v1::Node& node) {
  if (node.standbys_ready() == 0) return "";
  return absl::StrCat(node.standbys_ready(), " (", node.standby_memory_bytes() >> 20, " MiB)");
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
  Table table({"NODE", "STATE", "DEVICES", "FREE", "JOBS", "STANDBY", "STRIKES", "ADDRESS", "BUILD", "LAST SEEN",
               "REASON"});
  BuildUsers users;
  for (const v1::Node& node : all.nodes()) {
    table.AddRow({node.id(), StateText(node), DeviceText(node),
                  absl::StrCat(node.devices_size() - node.jobs_by_device_size()), JobText(node), StandbyText(node),
                  StrikeText(node), node.address(), node.build_id(), SeenText(node), ReasonText(node)});
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
               {"reason", ReasonText(node)},
               {"strikes", StrikeText(node)},
               {"pre-flight", PreflightText(node)},
               {"address", node.address()},
               {"devices", DeviceText(node)},
               {"jobs", JobText(node)},
               {"agent", absl::StrCat("build ", node.build_id(), ", start ", node.incarnation())},
               {"boot", node.boot_id()},
               {"last seen", SeenText(node)}},
              session.out);
  if (node.preflight().checks_size() > 0) PrintChecks(node.preflight(), session.out);
  return ExitCode::kOk;
}

absl::StatusOr<ExitCode> NodeStrikes(const NodeOptions& options, Session& session) {
  v1::GetNodeRequest request;
  request.set_id(options.node);
  LLM_ASSIGN_OR_RETURN(v1::Node node, session.cluster.GetNode(request));
  if (session.PrintStructured(node)) return ExitCode::kOk;
  session.out << node.id() << " " << StateText(node) << ", "
              << absl::StrFormat("%.2f", node.strike_score()) << " now (each strike halves in a day)\n";
  if (node.strikes().empty()) return ExitCode::kOk;
  Table table({"TIME", "WEIGHT", "JOB", "REASON"});
  for (int i = node.strikes_size() - 1; i >= 0; --i) {
    const v1::Strike& strike = node.strikes(i);
    table.AddRow({FormatTime(strike.time().seconds()), absl::StrFormat("%.2f", strike.weight()), strike.job(),
                  strike.reason()});
  }
  session.out << "\n" << table.ToText();
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
