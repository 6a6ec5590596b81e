#include "worker/engine/comm/in_process.h"

#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "common/base/check.h"
#include "common/base/mutex.h"
#include "worker/engine/comm/reduce.h"

namespace llmctl::engine::comm {
namespace {

struct Call {
  Op op = Op::kBarrier;
  Buffer buffer;
  int root = 0;
};

char* At(const Buffer& buffer, int64_t element) {
  return static_cast<char*>(buffer.data) + element * ElementBytes(buffer.type);
}

// Sums (or maxima) of [begin, begin + count) over all ranks, in rank order, left in rank 0's buffer.
void ReduceToFirst(const std::vector<Call>& calls, int64_t begin, int64_t count) {
  const Call& first = calls[0];
  for (size_t r = 1; r < calls.size(); ++r) {
    Accumulate(first.op, first.buffer.type, At(first.buffer, begin), At(calls[r].buffer, begin), count);
  }
}

void CopyFrom(const std::vector<Call>& calls, size_t source, int64_t begin, int64_t count) {
  size_t bytes = static_cast<size_t>(count * ElementBytes(calls[0].buffer.type));
  for (size_t r = 0; r < calls.size() && bytes > 0; ++r) {
    if (r != source) std::memcpy(At(calls[r].buffer, begin), At(calls[source].buffer, begin), bytes);
  }
}

void Perform(const std::vector<Call>& calls) {
  int64_t count = calls[0].buffer.count;
  int64_t share = count / static_cast<int64_t>(calls.size());
  switch (calls[0].op) {
    case Op::kAllReduceSum:
    case Op::kAllReduceMax:
      ReduceToFirst(calls, 0, count);
      CopyFrom(calls, 0, 0, count);
      return;
    case Op::kReduceScatterSum:
      ReduceToFirst(calls, 0, count);
      for (size_t r = 1; r < calls.size(); ++r) {
        int64_t begin = static_cast<int64_t>(r) * share;
        std::memcpy(At(calls[r].buffer, begin), At(calls[0].buffer, begin),
                    static_cast<size_t>(share * ElementBytes(calls[0].buffer.type)));
      }
      return;
    case Op::kAllGather:
      for (size_t r = 0; r < calls.size(); ++r) CopyFrom(calls, r, static_cast<int64_t>(r) * share, share);
      return;
    case Op::kBroadcast:
      CopyFrom(calls, static_cast<size_t>(calls[0].root), 0, count);
      return;
    case Op::kBarrier:
      return;
  }
}

class Hub {
 public:
  explicit Hub(int size) : calls_(static_cast<size_t>(size)) {}

  int size() const { return static_cast<int>(calls_.size()); }

  absl::Status Run(int rank, const Call& call) {
    MutexLock lock(mutex_);
    if (aborted_) return absl::UnavailableError("the group is aborted or a peer is gone");
    calls_[static_cast<size_t>(rank)] = call;
    int64_t round = round_;
    if (++arrived_ == size()) {
      CheckSameCall();
      Perform(calls_);
      arrived_ = 0;
      ++round_;
      changed_.NotifyAll();
      return absl::OkStatus();
    }
    while (round_ == round && !aborted_) changed_.Wait(mutex_);
    if (round_ == round) return absl::UnavailableError("the group was aborted or a peer left it");
    return absl::OkStatus();
  }

  void Abort() {
    MutexLock lock(mutex_);
    aborted_ = true;
    changed_.NotifyAll();
  }

 private:
  void CheckSameCall() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    for (const Call& call : calls_) {
      CHECK(call.op == calls_[0].op && call.buffer.count == calls_[0].buffer.count &&
            call.buffer.type == calls_[0].buffer.type && call.root == calls_[0].root)
          << "ranks disagree about which collective comes next";
    }
  }

  Mutex mutex_;
  CondVar changed_;
  std::vector<Call> calls_ ABSL_GUARDED_BY(mutex_);
  int arrived_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t round_ ABSL_GUARDED_BY(mutex_) = 0;
  bool aborted_ ABSL_GUARDED_BY(mutex_) = false;
};

class InProcessBackend : public Backend {
 public:
  InProcessBackend(std::shared_ptr<Hub> hub, int rank, int size) : hub_(std::move(hub)), rank_(rank), size_(size) {}
  ~InProcessBackend() override { hub_->Abort(); }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  absl::Status Run(Op op, const Buffer& buffer, int root) override { return hub_->Run(rank_, {op, buffer, root}); }
  void Abort() override { hub_->Abort(); }

 private:
  std::shared_ptr<Hub> hub_;  // shared by the ranks; the last to go frees it
  int rank_;
  int size_;
};

}  // namespace

std::vector<std::unique_ptr<Backend>> CreateInProcessGroup(int size) {
  CHECK_GT(size, 0);
  auto hub = std::make_shared<Hub>(size);
  std::vector<std::unique_ptr<Backend>> ranks;
  for (int rank = 0; rank < size; ++rank) ranks.push_back(std::make_unique<InProcessBackend>(hub, rank, size));
  return ranks;
}

}  // namespace llmctl::engine::comm
