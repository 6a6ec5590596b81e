// The daemons of a local cluster as command lines.
#pragma once

#include <string>
#include <vector>

#include "absl/time/time.h"

#include "client/local/cluster_directory.h"
#include "client/local/supervisor.h"

namespace llmctl::client {

struct ClusterShape {
  int workers = 2;
  int devices_per_worker = 1;
  absl::Duration lease = absl::Seconds(2);
  int cores = 1;  // of this machine, shared by the devices
};

struct DaemonPrograms {
  std::string coordinator;
  std::string worker;
};

// The coordinator first. Ports are the system's choice; addresses go through files in the directory.
std::vector<DaemonCommand> DaemonCommands(const ClusterDirectory& directory, const ClusterShape& shape,
                                          const DaemonPrograms& programs);

// "worker-0", ...
std::string WorkerName(int index);

}  // namespace llmctl::client
