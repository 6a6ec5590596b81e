// Is a local cluster ready? It is once the coordinator serves and all its workers have registered.
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "client/cluster/cluster.h"
#include "client/local/cluster_directory.h"
#include "client/local/local_state.h"

namespace llmctl::client {

// The cluster of the directory, wherever its coordinator listens just now.
std::unique_ptr<Cluster> ConnectLocal(const ClusterDirectory& directory, absl::Duration timeout);

// NotFound when no cluster is up there.
absl::StatusOr<LocalState> ReadLocalState(const ClusterDirectory& directory);

// Waits for a supervisor that was just started to bring up all daemons. The error names the daemon that is
// missing and ends with its log.
absl::Status AwaitReady(const ClusterDirectory& directory, absl::Duration patience);

}  // namespace llmctl::client
