// llm-coordinator: flags and wiring. Everything it does is in runtime/, rpc/ and store/.
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>

#include <CLI/CLI.hpp>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

#include "common/base/failpoint.h"
#include "common/base/file.h"
#include "common/base/status.h"
#include "common/build_id/build_id.h"
#include "common/observe/log.h"
#include "common/observe/metrics_server.h"
#include "coordinator/classify/failure_rules.h"
#include "coordinator/rpc/server.h"
#include "coordinator/runtime/crash_marker.h"
#include "coordinator/runtime/runtime.h"
#include "coordinator/store/sqlite/backup.h"
#include "coordinator/store/sqlite/sqlite_store.h"

namespace {

struct Flags {
  std::string data_dir;
  std::string listen = "127.0.0.1:7600";
  std::string address_file;
  std::string metrics_listen = "127.0.0.1:0";
  std::string metrics_address_file;
  std::string heartbeat_interval = "1s";
  std::string lease = "10s";
  std::string start_grace = "60s";
  bool insecure_listen = false;
  std::string failure_rules;
  bool print_failure_rules = false;
  std::string restore;
  bool force = false;
};

void AddFlags(CLI::App& app, Flags& flags) {
  app.add_option("--data-dir", flags.data_dir, "Where the store is kept; created if missing");
  app.add_option("--listen", flags.listen, "Address of the API, host:port; port 0 lets the system choose")
      ->capture_default_str();
  app.add_option("--address-file", flags.address_file, "Write the API's address here once it is served");
  app.add_option("--metrics-listen", flags.metrics_listen, "Address of /metrics and /healthz; 'off' for none")
      ->capture_default_str();
  app.add_option("--metrics-address-file", flags.metrics_address_file, "Write the metrics address here");
  app.add_option("--heartbeat-interval", flags.heartbeat_interval, "How often hosts report")->capture_default_str();
  app.add_option("--lease", flags.lease, "How long a silent host counts as alive")->capture_default_str();
  app.add_option("--start-grace", flags.start_grace, "How long after a start known hosts count as alive")
      ->capture_default_str();
  app.add_flag("--insecure-listen", flags.insecure_listen, "Serve addresses other than loopback without any security");
  app.add_option("--failure-rules", flags.failure_rules,
                 "Rules (JSON) that tell failures, looked at before those compiled in; see --print-failure-rules");
  app.add_flag("--print-failure-rules", flags.print_failure_rules, "Print the failure rules compiled in, and end");
  app.add_option("--restore", flags.restore, "Make the store anew from this backup (llmctl admin backup), and end")
      ->type_name("FILE");
  app.add_flag("--force", flags.force, "With --restore: even if the store has jobs; it is moved aside");
  app.set_version_flag("--version", "llm-coordinator " + llmctl::BuildId());
}

absl::StatusOr<absl::Duration> ParseDurationFlag(const char* flag, const std::string& text) {
  absl::Duration duration;
  bool readable = absl::ParseDuration(text, &duration);
  if (!readable || duration < absl::Milliseconds(10) || duration > absl::Hours(24)) {
    return absl::InvalidArgumentError(
        absl::StrCat(flag, "=", text, ": expected a duration such as 10s, at least 10ms and at most 24h"));
  }
  return duration;
}

absl::StatusOr<std::shared_ptr<const llmctl::classify::FailureRules>> ReadFailureRules(const std::string& path) {
  if (path.empty()) return llmctl::classify::FailureRules::Defaults();
  absl::StatusOr<std::string> text = llmctl::ReadFile(path);
  if (!text.ok()) return llmctl::Annotate(text.status(), "--failure-rules");
  return llmctl::classify::FailureRules::Read(*text, path);
}

absl::StatusOr<llmctl::runtime::Runtime::Options> RuntimeOptions(const Flags& flags) {
  llmctl::runtime::Runtime::Options options;
  LLM_ASSIGN_OR_RETURN(options.heartbeat_interval, ParseDurationFlag("--heartbeat-interval", flags.heartbeat_interval));
  LLM_ASSIGN_OR_RETURN(options.lease, ParseDurationFlag("--lease", flags.lease));
  LLM_ASSIGN_OR_RETURN(options.start_grace, ParseDurationFlag("--start-grace", flags.start_grace));
  // One lost heartbeat must not cost a job its hosts.
  if (options.lease < 2 * options.heartbeat_interval) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--lease=", flags.lease, ": expected at least twice --heartbeat-interval=", flags.heartbeat_interval));
  }
  LLM_ASSIGN_OR_RETURN(options.failure_rules, ReadFailureRules(flags.failure_rules));
  options.build_id = llmctl::BuildId();
  options.on_fatal = [](const absl::Status& status) {
    llmctl::Log(llmctl::LogLevel::kError, "coordinator-ends", {{"reason", status.ToString()}});
    // Nothing may be written or sent any more: no destructors.
    std::_Exit(1);
  };
  return options;
}

absl::Status WriteAddress(const std::string& file, const std::string& address) {
  return file.empty() ? absl::OkStatus() : llmctl::WriteFileAtomically(file, address + "\n");
}

std::string StorePath(const Flags& flags) { return flags.data_dir + "/coordinator.db"; }

// Restarts after a crash find in it what the crash was about.
absl::StatusOr<llmctl::runtime::CrashMarker> OpenMarker(const Flags& flags) {
  return llmctl::runtime::CrashMarker::Open(flags.data_dir + "/working-on");
}

absl::Status Restore(const Flags& flags) {
  LLM_RETURN_IF_ERROR(llmctl::MakeDirectories(flags.data_dir));
  LLM_ASSIGN_OR_RETURN(
      llmctl::store::Restored restored,
      llmctl::store::RestoreSqliteStore({.backup = flags.restore, .path = StorePath(flags), .force = flags.force}));
  const llmctl::store::BackupHeader& header = restored.header;
  std::cout << "restored " << StorePath(flags) << " from " << flags.restore << ", made "
            << absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", header.time, absl::UTCTimeZone()) << " in term " << header.term
            << ": " << header.jobs << " jobs\n";
  if (!restored.replaced.empty()) std::cout << "what was there before is " << restored.replaced << "\n";
  std::cout << "start llm-coordinator on it; new ids and generations begin above " << llmctl::store::kRestoreGap
            << "\n";
  return absl::OkStatus();
}

absl::Status Serve(const Flags& flags, const sigset_t& stop_signals) {
  if (flags.data_dir.empty()) return absl::InvalidArgumentError("--data-dir is required: where the store is kept");
  LLM_ASSIGN_OR_RETURN(llmctl::runtime::Runtime::Options options, RuntimeOptions(flags));
  LLM_RETURN_IF_ERROR(llmctl::MakeDirectories(flags.data_dir));
  LLM_ASSIGN_OR_RETURN(llmctl::runtime::CrashMarker marker, OpenMarker(flags));
  llmctl::Focus focus = marker.focus();
  LLM_ASSIGN_OR_RETURN(std::unique_ptr<llmctl::store::Store> store,
                       llmctl::store::OpenSqliteStore({.path = StorePath(flags), .focus = &focus}));
  options.crash_marker = &marker;
  LLM_ASSIGN_OR_RETURN(std::unique_ptr<llmctl::runtime::Runtime> runtime,
                       llmctl::runtime::Runtime::Start(std::move(options), *store));
  std::unique_ptr<llmctl::MetricsServer> metrics;
  if (flags.metrics_listen != "off") {
    LLM_ASSIGN_OR_RETURN(metrics,
                         llmctl::MetricsServer::Start({.listen = flags.metrics_listen,
                                                       .insecure_listen = flags.insecure_listen,
                                                       .metrics = [&] { return runtime->RenderMetrics(); },
                                                       .health = [&] { return runtime->Health(); }}));
    LLM_RETURN_IF_ERROR(WriteAddress(flags.metrics_address_file, metrics->address()));
  }
  LLM_ASSIGN_OR_RETURN(
      std::unique_ptr<llmctl::rpc::Server> server,
      llmctl::rpc::Server::Start({.listen = flags.listen,
                                  .insecure_listen = flags.insecure_listen,
                                  .scratch_directory = flags.data_dir},
                                 *runtime));
  LLM_RETURN_IF_ERROR(WriteAddress(flags.address_file, server->address()));
  llmctl::Log(llmctl::LogLevel::kInfo, "coordinator-serving",
              {{"build", llmctl::BuildId()},
               {"address", server->address()},
               {"metrics", metrics ? metrics->address() : "off"},
               {"data_dir", flags.data_dir},
               {"term", runtime->term()},
               {"lease", flags.lease}});

  int signal = 0;
  sigwait(&stop_signals, &signal);
  llmctl::Log(llmctl::LogLevel::kInfo, "coordinator-stopping", {{"signal", signal}});
  // The runtime first: it answers what waits and closes the links, so that the server has no calls to wait for.
  runtime->Stop();
  server->Stop();
  return absl::OkStatus();
}

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

int End(const absl::Status& status) {
  if (status.ok()) return 0;
  std::cerr << "llm-coordinator: " << status.message() << "\n";
  return status.code() == absl::StatusCode::kInvalidArgument ? 2 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("The control plane of llmctl: accepts jobs, places them, keeps them running.", "llm-coordinator");
  Flags flags;
  AddFlags(app, flags);
  CLI11_PARSE(app, argc, argv);
  if (flags.print_failure_rules) {
    std::cout << llmctl::classify::DefaultRulesText() << "\n";
    return 0;
  }

  if (!flags.restore.empty()) return End(Restore(flags));
  absl::Status armed = llmctl::ArmFailpoints(Environment("LLM_FAILPOINTS"), Environment("LLM_FAILPOINT_COUNTS"));
  if (!armed.ok()) return End(armed);
  // Blocked before any thread starts, so that sigwait() is the only one to see them.
  sigset_t stop_signals;
  sigemptyset(&stop_signals);
  sigaddset(&stop_signals, SIGTERM);
  sigaddset(&stop_signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &stop_signals, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  // A limit of the file size is an error of the write that meets it, and no reason to die.
  std::signal(SIGXFSZ, SIG_IGN);

  return End(Serve(flags, stop_signals));
}
