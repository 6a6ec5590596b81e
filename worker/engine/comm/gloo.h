// Gloo: collectives between CPU processes, over TCP on the rank's fabric address.
//
// Two things are not Gloo's own. Sums over more than two ranks are taken in rank order (each rank adds up its
// share of the vector, then all shares are gathered), so that they are the same bits as the in-process
// backend's. And Abort works: Gloo notices a stopped or absent peer only at its timeout and has no way to
// interrupt a waiting call, so the sockets that appear while the group is built are remembered and shut down,
// upon which every waiting call fails within a millisecond. The same is done at the first error, so that
// a rank's death reaches all others through the neighbours that see it first.
//
// The first group makes the process ignore SIGPIPE. c10d's own flight recorder is not safe with several ranks in
// one process: TORCH_FR_BUFFER_SIZE=0 in the environment turns it off, and comm/ring.h serves instead.
//
// No torch in this header: only gloo.cc pays for it.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "worker/engine/comm/collective.h"
#include "worker/engine/comm/rendezvous_store.h"

namespace llmctl::engine::comm {

struct GlooOptions {
  RendezvousStore* store = nullptr;  // must outlive the backend
  std::string group;                 // unique in the store: "world", "data", ...
  int rank = 0;
  int size = 1;
  std::string fabric_address;        // own host name or address that the peers can reach
  absl::Duration form_timeout = absl::Minutes(5);
  // A collective that waits longer has lost a peer. Rank 0 writes checkpoints while the others wait, hence long.
  absl::Duration timeout = absl::Minutes(30);
};

// Waits for all ranks of the group. Unavailable when the store is cancelled or a peer does not come.
absl::StatusOr<std::unique_ptr<Backend>> CreateGlooBackend(const GlooOptions& options);

}  // namespace llmctl::engine::comm
