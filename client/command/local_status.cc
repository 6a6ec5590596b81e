#include <nlohmann/json.hpp>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

#include "client/command/verbs.h"
#include "client/local/readiness.h"
#include "client/output/table.h"
#include "client/output/yaml_text.h"
#include "common/base/file.h"
#include "common/base/status.h"

namespace llmctl::client {
namespace {

// Where the daemon listens: the coordinator for requests, a worker for Prometheus only.
std::string AddressOf(const ClusterDirectory& directory, const std::string& daemon) {
  bool coordinator = daemon == "coordinator";
  absl::StatusOr<std::string> text =
      ReadFile(coordinator ? directory.coordinator_address_file() : directory.metrics_address_file(daemon));
  if (!text.ok()) return "";
  std::string address(absl::StripAsciiWhitespace(*text));
  return coordinator ? address : absl::StrCat("http://", address, "/metrics");
}

nlohmann::ordered_json StatusJson(const ClusterDirectory& directory, const LocalState& state) {
  nlohmann::ordered_json json = nlohmann::ordered_json::parse(EncodeLocalState(state));
  json["directory"] = directory.path();
  for (auto& daemon : json["daemons"]) {
    std::string name = daemon["name"].get<std::string>();
    daemon["address"] = AddressOf(directory, name);
    daemon["log"] = directory.log_file(name);
  }
  return json;
}

}  // namespace

absl::StatusOr<ExitCode> LocalStatus(const LocalOptions& options, Session& session) {
  ClusterDirectory directory(options.directory);
  LLM_ASSIGN_OR_RETURN(LocalState state, ReadLocalState(directory));
  if (session.format == Format::kJson) {
    session.out << StatusJson(directory, state).dump(2) << "\n";
    return ExitCode::kOk;
  }
  if (session.format == Format::kYaml) {
    session.out << ToYaml(StatusJson(directory, state));
    return ExitCode::kOk;
  }
  Table table({"DAEMON", "PID", "STATE", "RESTARTS", "LAST END", "ADDRESS"});
  table.AddRow({"supervisor", absl::StrCat(state.pid), "running", "", "", ""});
  for (const DaemonState& daemon : state.daemons) {
    bool running = daemon.pid != 0;
    table.AddRow({daemon.name, running ? absl::StrCat(daemon.pid) : "", running ? "running" : "restarting",
                  absl::StrCat(daemon.restarts), daemon.last_end, AddressOf(directory, daemon.name)});
  }
  session.out << table.ToText() << "logs: " << directory.log_directory() << "\n";
  return ExitCode::kOk;
}

}  // namespace llmctl::client
