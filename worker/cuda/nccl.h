// NCCL: collectives between GPUs, from a plug-in that is loaded where one is asked for.
//
// Everything that needs CUDA to build or run sits in libllm_cuda.so, beside the programs: one build of the
// trainer serves machines with and without GPUs. A build that found no CUDA has no plug-in and no_cuda.cc in place
// of load_plugin.cc.
//
// Buffers are memory of the group's device. Sums are in NCCL's order: the same on every run of one layout, not the
// order of the ranks.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "worker/engine/comm/collective.h"
#include "worker/engine/comm/rendezvous_store.h"

namespace llmctl::cuda {

struct NcclOptions {
  engine::comm::RendezvousStore* store = nullptr;  // must outlive the backend
  std::string group;                               // unique in the store
  int rank = 0;
  int size = 1;
  int device = 0;  // CUDA ordinal
  absl::Duration timeout = absl::Minutes(30);
};

// Unimplemented: built without CUDA. Unavailable: no plug-in, no GPU, or a peer does not come.
absl::StatusOr<std::unique_ptr<engine::comm::Backend>> CreateNcclBackend(const NcclOptions& options);

// What the plug-in exports, as kCreateNcclBackendSymbol: null and `error` filled in on failure.
using CreateNcclBackendFunction = engine::comm::Backend*(const NcclOptions& options, std::string& error);
inline constexpr char kCreateNcclBackendSymbol[] = "llm_cuda_create_nccl_backend";

}  // namespace llmctl::cuda
