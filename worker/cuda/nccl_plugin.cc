#include <atomic>
#include <chrono>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "worker/cuda/nccl.h"
#include "worker/engine/comm/torch_store.h"

namespace llmctl::cuda {
namespace {

using engine::comm::Buffer;
using engine::comm::DataType;
using engine::comm::Op;

at::ScalarType TorchType(DataType type) {
  switch (type) {
    case DataType::kFloat32: return at::kFloat;
    case DataType::kBfloat16: return at::kBFloat16;
    case DataType::kFloat64: return at::kDouble;
    case DataType::kInt64: return at::kLong;
    case DataType::kByte: break;
  }
  return at::kByte;
}

class NcclBackend : public engine::comm::Backend {
 public:
  NcclBackend(c10::intrusive_ptr<c10d::ProcessGroupNCCL> group, c10::DeviceIndex device)
      : group_(std::move(group)), device_(device) {}

  int rank() const override { return group_->getRank(); }
  int size() const override { return group_->getSize(); }

  absl::Status Run(Op op, const Buffer& buffer, int root) override {
    if (aborted_) return absl::UnavailableError("the group is aborted");
    try {
      RunOrThrow(op, buffer, root);
      // A collective is only queued when it returns; our callers expect it done.
      c10::cuda::getCurrentCUDAStream(device_).synchronize();
      return absl::OkStatus();
    } catch (const std::exception& error) {
      return absl::UnavailableError(absl::StrCat("a peer is gone or the group was aborted: ", error.what()));
    }
  }

  void Abort() override {
    if (!aborted_.exchange(true)) group_->abort();
  }

 private:
  void RunOrThrow(Op op, const Buffer& buffer, int root) {
    if (op == Op::kBarrier) {
      at::Tensor token = at::zeros({1}, at::TensorOptions().dtype(at::kInt).device(at::kCUDA, device_));
      std::vector<at::Tensor> tokens = {token};
      group_->allreduce(tokens)->wait();
      return;
    }
    at::Tensor whole =
        at::from_blob(buffer.data, {buffer.count},
                      at::TensorOptions().dtype(TorchType(buffer.type)).device(at::kCUDA, device_));
    int64_t share = buffer.count / size();
    at::Tensor own = whole.narrow(0, rank() * share, share);
    std::vector<at::Tensor> tensors = {whole};
    switch (op) {
      case Op::kAllReduceSum:
        group_->allreduce(tensors)->wait();
        return;
      case Op::kAllReduceMax: {
        c10d::AllreduceOptions maximum;
        maximum.reduceOp = c10d::ReduceOp::MAX;
        group_->allreduce(tensors, maximum)->wait();
        return;
      }
      case Op::kReduceScatterSum:
        group_->_reduce_scatter_base(own, whole)->wait();
        return;
      case Op::kAllGather:
        group_->_allgather_base(whole, own)->wait();
        return;
      case Op::kBroadcast: {
        c10d::BroadcastOptions from;
        from.rootRank = root;
        group_->broadcast(tensors, from)->wait();
        return;
      }
      case Op::kBarrier:
        return;
    }
  }

  c10::intrusive_ptr<c10d::ProcessGroupNCCL> group_;
  const c10::DeviceIndex device_;
  std::atomic<bool> aborted_ = false;
};

}  // namespace
}  // namespace llmctl::cuda

extern "C" llmctl::engine::comm::Backend* llm_cuda_create_nccl_backend(const llmctl::cuda::NcclOptions& options,
                                                                       std::string& error) {
  try {
    auto timeout = std::chrono::milliseconds(absl::ToInt64Milliseconds(options.timeout));
    auto store = c10::make_intrusive<c10d::PrefixStore>(
        options.group, llmctl::engine::comm::MakeTorchStore(options.store, timeout));
    auto nccl = c10d::ProcessGroupNCCL::Options::create();
    nccl->timeout = timeout;
    auto group = c10::make_intrusive<c10d::ProcessGroupNCCL>(store, options.rank, options.size, nccl);
    return new llmctl::cuda::NcclBackend(std::move(group), static_cast<c10::DeviceIndex>(options.device));
  } catch (const std::exception& exception) {
    error = exception.what();
    return nullptr;
  }
}
