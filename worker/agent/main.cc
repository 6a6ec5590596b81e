// llm-worker: flags and wiring. What an agent does is in agent.h and core/.
#include <pthread.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include <CLI/CLI.hpp>
#include "absl/strings/str_cat.h"

#include "common/base/file.h"
#include "common/base/status.h"
#include "common/build_id/build_id.h"
#include "common/observe/log.h"
#include "common/observe/metrics_server.h"
#include "worker/agent/agent.h"
#include "worker/agent/devices/devices.h"
#include "worker/agent/host/host_facts.h"
#include "worker/agent/host/trainer_program.h"

namespace llmctl::agent {
namespace {

struct Flags {
  std::string node;
  std::string coordinator = "127.0.0.1:7600";
  std::string state_dir;
  std::string devices = "auto";
  std::string trainer;
  std::string shim;
  std::string evidence;
  std::string allowed_roots;
  std::string fabric_address;
  std::string metrics_listen = "127.0.0.1:0";
  std::string metrics_address_file;
  bool insecure_listen = false;
  int threads_per_device = 0;
  int standby = -1;
};

void AddFlags(CLI::App& app, Flags& flags) {
  app.add_option("--node", flags.node, "This host's name in the cluster (default: the host name)");
  app.add_option("--coordinator", flags.coordinator, "host:port, or @FILE that holds it and is read at every dial")
      ->capture_default_str();
  app.add_option("--state-dir", flags.state_dir, "Where shims, logs and records are kept; created if missing")
      ->required();
  app.add_option("--devices", flags.devices, "cpu:N for N slots of this host's cores, or auto for its GPUs")
      ->capture_default_str();
  app.add_option("--trainer", flags.trainer, "llm-trainer (default: beside this program)");
  app.add_option("--shim", flags.shim, "llm-shim (default: beside this program)");
  app.add_option("--evidence", flags.evidence, "llm-evidence (default: beside this program); 'off': none is collected");
  app.add_option("--allowed-roots", flags.allowed_roots,
                 "Folders, A:B, below which datasets and checkpoints must lie (default: anywhere)");
  app.add_option("--fabric-address", flags.fabric_address,
                 "Where other ranks reach this host (default: the interface of the route to the coordinator)");
  app.add_option("--metrics-listen", flags.metrics_listen, "Address of /metrics and /healthz; 'off' for none")
      ->capture_default_str();
  app.add_option("--metrics-address-file", flags.metrics_address_file, "Write the metrics address here");
  app.add_flag("--insecure-listen", flags.insecure_listen, "Serve metrics on other addresses than loopback");
  app.add_option("--threads-per-device", flags.threads_per_device,
                 "Threads of each trainer (default: this host's cores over its devices)");
  app.add_option("--standby", flags.standby,
                 "Trainers that wait, loaded, so that a start is quick; 0 for none (default: one per device)");
  app.set_version_flag("--version", "llm-worker " + BuildId());
}

absl::StatusOr<std::string> FindProgram(const std::string& flag, const char* name) {
  std::error_code error;
  std::filesystem::path path = flag;
  if (flag.empty()) path = std::filesystem::read_symlink("/proc/self/exe", error).parent_path() / name;
  // The shim runs in another folder.
  path = std::filesystem::absolute(path, error);
  if (::access(path.c_str(), X_OK) != 0) {
    return ErrnoStatus(errno, absl::StrCat(path.string(), ": expected a program; give its path with --",
                                           std::string(name).substr(4)));
  }
  return path.string();
}

// All that a trainer inherits; credentials and settings of the agent stay here.
std::vector<std::string> TrainerEnvironment(int threads) {
  std::vector<std::string> out = {absl::StrCat("OMP_NUM_THREADS=", threads), "OMP_WAIT_POLICY=passive"};
  for (const char* name : {"PATH", "HOME", "LANG"}) {
    if (const char* value = std::getenv(name)) out.push_back(absl::StrCat(name, "=", value));
  }
  return out;
}

absl::StatusOr<HostIdentity> Identify(const Flags& flags, const TrainerProgram& trainer, StateDir& state_dir) {
  HostIdentity identity = {.node = flags.node,
                           .build_id = BuildId(),
                           .trainer_digest = trainer.digest(),
                           .capabilities = AgentCapabilities(),
                           .fabric_address = flags.fabric_address};
  if (identity.node.empty()) {
    LLM_ASSIGN_OR_RETURN(identity.node, ReadHostName());
  }
  LLM_ASSIGN_OR_RETURN(identity.boot_id, ReadBootId());
  LLM_ASSIGN_OR_RETURN(identity.devices, FindDevices(flags.devices));
  LLM_ASSIGN_OR_RETURN(identity.incarnation, state_dir.NextIncarnation());
  return identity;
}

absl::StatusOr<std::unique_ptr<MetricsServer>> ServeMetrics(const Flags& flags, const AgentMetrics& metrics) {
  if (flags.metrics_listen == "off") return std::unique_ptr<MetricsServer>();
  LLM_ASSIGN_OR_RETURN(std::unique_ptr<MetricsServer> server,
                       MetricsServer::Start({.listen = flags.metrics_listen,
                                             .insecure_listen = flags.insecure_listen,
                                             .metrics = [&metrics] { return metrics.Render(); },
                                             .health = [] { return absl::OkStatus(); }}));
  if (!flags.metrics_address_file.empty()) {
    LLM_RETURN_IF_ERROR(WriteFileAtomically(flags.metrics_address_file, server->address() + "\n"));
  }
  return server;
}

absl::Status Run(const Flags& flags, UniqueFd signals) {
  LLM_ASSIGN_OR_RETURN(std::string trainer_path, FindProgram(flags.trainer, "llm-trainer"));
  LLM_ASSIGN_OR_RETURN(TrainerProgram trainer, TrainerProgram::Open(trainer_path));
  LLM_ASSIGN_OR_RETURN(std::string shim, FindProgram(flags.shim, "llm-shim"));
  absl::StatusOr<std::string> evidence = std::string();
  if (flags.evidence != "off") evidence = FindProgram(flags.evidence, "llm-evidence");
  if (!evidence.ok() && !flags.evidence.empty()) return evidence.status();
  // Jobs can do without; who looks for evidence later finds here why there is none.
  if (!evidence.ok()) Log(LogLevel::kWarning, "no-evidence", {{"why", evidence.status().message()}});
  std::error_code error;
  LLM_ASSIGN_OR_RETURN(StateDir state_dir,
                       StateDir::Open(std::filesystem::absolute(flags.state_dir, error).lexically_normal().string()));
  LLM_ASSIGN_OR_RETURN(HostIdentity identity, Identify(flags, trainer, state_dir));
  int cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  int devices = static_cast<int>(identity.devices.size());
  std::string device_kind = identity.devices.front().kind;
  int threads = flags.threads_per_device > 0 ? flags.threads_per_device : std::max(1, cores / devices);

  AgentMetrics metrics;
  LLM_ASSIGN_OR_RETURN(std::unique_ptr<MetricsServer> server, ServeMetrics(flags, metrics));
  Log(LogLevel::kInfo, "agent-started",
      {{"build", identity.build_id},
       {"node", identity.node},
       {"incarnation", identity.incarnation},
       {"devices", devices},
       {"metrics", server ? server->address() : "off"}});
  StandbySet::Options standbys = {.standbys = state_dir.standbys(),
                                  .shim_program = shim,
                                  .environment = TrainerEnvironment(threads)};
  Agent::Options options = {.coordinator = flags.coordinator,
                            .identity = std::move(identity),
                            .trainer = std::move(trainer),
                            .shims = {.shims = state_dir.shims(),
                                      .ended = state_dir.ended(),
                                      .shim_program = shim,
                                      .trainer_program = trainer_path,
                                      .environment = TrainerEnvironment(threads),
                                      .roots = AllowedRoots(flags.allowed_roots)},
                            .standbys = std::move(standbys),
                            .standbys_wanted = flags.standby < 0 ? devices : flags.standby,
                            .preflight = {.trainer_program = trainer_path,
                                          .directory = state_dir.path(),
                                          .devices = devices,
                                          .device_kind = device_kind,
                                          .environment = TrainerEnvironment(threads)},
                            .evidence_program = evidence.value_or(""),
                            .signals = std::move(signals)};
  return Agent(std::move(options), std::move(state_dir), metrics).Run();
}

}  // namespace
}  // namespace llmctl::agent

int main(int argc, char** argv) {
  CLI::App app("The agent of a host: starts trainers, keeps them through its own and the coordinator's restarts.",
               "llm-worker");
  llmctl::agent::Flags flags;
  llmctl::agent::AddFlags(app, flags);
  CLI11_PARSE(app, argc, argv);

  // Blocked before any thread starts, so that only the signalfd sees them.
  sigset_t stop_signals;
  sigemptyset(&stop_signals);
  sigaddset(&stop_signals, SIGTERM);
  sigaddset(&stop_signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &stop_signals, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  llmctl::UniqueFd signals(::signalfd(-1, &stop_signals, SFD_CLOEXEC | SFD_NONBLOCK));

  absl::Status status = llmctl::agent::Run(flags, std::move(signals));
  if (status.ok()) return 0;
  std::cerr << "llm-worker: " << status.message() << "\n";
  return absl::IsInvalidArgument(status) ? 2 : 1;
}
