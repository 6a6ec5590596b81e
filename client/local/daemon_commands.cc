#include "client/local/daemon_commands.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace llmctl::client {
namespace {

constexpr char kCoordinator[] = "coordinator";

std::string Flag(const char* name, const std::string& value) { return absl::StrCat("--", name, "=", value); }

}  // namespace

std::string WorkerName(int index) { return absl::StrCat("worker-", index); }

std::vector<DaemonCommand> DaemonCommands(const ClusterDirectory& directory, const ClusterShape& shape,
                                          const DaemonPrograms& programs) {
  // Four renewals a lease: one may be late without a worker being declared lost.
  std::vector<DaemonCommand> commands{
      {kCoordinator,
       {programs.coordinator, Flag("data-dir", directory.data_directory(kCoordinator)), "--listen=127.0.0.1:0",
        Flag("address-file", directory.coordinator_address_file()), "--metrics-listen=127.0.0.1:0",
        Flag("metrics-address-file", directory.metrics_address_file(kCoordinator)),
        Flag("heartbeat-interval", absl::FormatDuration(shape.lease / 4)),
        Flag("lease", absl::FormatDuration(shape.lease))},
       directory.log_file(kCoordinator)}};
  // Oversubscribed cores cost more than they give: spinning threads wait for each other.
  int threads = std::max(1, shape.cores / std::max(1, shape.workers * shape.devices_per_worker));
  for (int i = 0; i < shape.workers; ++i) {
    std::string name = WorkerName(i);
    commands.push_back({name,
                        {programs.worker, Flag("node", name),
                         Flag("coordinator", absl::StrCat("@", directory.coordinator_address_file())),
                         Flag("state-dir", directory.data_directory(name)),
                         Flag("devices", absl::StrCat("cpu:", shape.devices_per_worker)),
                         "--metrics-listen=127.0.0.1:0",
                         Flag("metrics-address-file", directory.metrics_address_file(name)),
                         Flag("threads-per-device", absl::StrCat(threads))},
                        directory.log_file(name)});
  }
  return commands;
}

}  // namespace llmctl::client
