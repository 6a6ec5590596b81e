#include "worker/cuda/nccl.h"

namespace llmctl::cuda {

absl::StatusOr<std::unique_ptr<engine::comm::Backend>> CreateNcclBackend(const NcclOptions& options) {
  return absl::UnimplementedError(
      "NCCL group: this build has no CUDA; build where nccl.h and LibTorch for CUDA are found, or use CPU devices");
}

}  // namespace llmctl::cuda
