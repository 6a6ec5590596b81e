#include "worker/engine/comm/gloo.h"

#include <dirent.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <map>
#include <utility>
#include <vector>

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "common/base/check.h"
#include "common/base/failpoint.h"
#include "worker/engine/comm/reduce.h"
#include "worker/engine/comm/torch_store.h"

namespace llmctl::engine::comm {
namespace {

// Connected TCP sockets of this process: descriptor to inode. The inode tells a remembered socket from a file
// that got its number later.
std::map<int, ino_t> ConnectedSockets() {
  std::map<int, ino_t> sockets;
  DIR* directory = opendir("/proc/self/fd");
  if (directory == nullptr) return sockets;
  while (dirent* entry = readdir(directory)) {
    int fd = std::atoi(entry->d_name);
    sockaddr_storage peer;
    socklen_t length = sizeof(peer);
    if (getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &length) != 0) continue;
    if (peer.ss_family != AF_INET && peer.ss_family != AF_INET6) continue;
    struct stat info;
    if (fstat(fd, &info) == 0) sockets[fd] = info.st_ino;
  }
  closedir(directory);
  return sockets;
}

at::ScalarType TorchType(DataType type) {
  switch (type) {
    case DataType::kFloat32: return at::kFloat;
    case DataType::kBfloat16: return at::kBFloat16;
    case DataType::kFloat64: return at::kDouble;
    case DataType::kInt64: return at::kLong;
    case DataType::kByte: return at::kByte;
  }
  CHECK(false) << "no such data type: " << static_cast<int>(type);
  return at::kByte;
}

at::Tensor View(void* data, int64_t count, DataType type) {
  return at::from_blob(data, {count}, at::TensorOptions().dtype(TorchType(type)));
}

class GlooBackend : public Backend {
 public:
  GlooBackend(c10::intrusive_ptr<c10d::ProcessGroupGloo> group, std::map<int, ino_t> sockets)
      : group_(std::move(group)), sockets_(std::move(sockets)) {}

  int rank() const override { return group_->getRank(); }
  int size() const override { return group_->getSize(); }

  absl::Status Run(Op op, const Buffer& buffer, int root) override {
    if (aborted_) return absl::UnavailableError("the group is aborted or has lost a peer");
    try {
      RunOrThrow(op, buffer, root);
      return absl::OkStatus();
    } catch (const std::exception& error) {
      Abort();
      return absl::UnavailableError(absl::StrCat("a peer is gone or the group was aborted: ", error.what()));
    }
  }

  void Abort() override {
    aborted_ = true;
    for (const auto& [fd, inode] : sockets_) {
      struct stat info;
      if (fstat(fd, &info) == 0 && info.st_ino == inode) shutdown(fd, SHUT_RDWR);
    }
  }

 private:
  void RunOrThrow(Op op, const Buffer& buffer, int root);
  void SumInRankOrder(const Buffer& buffer);
  // Adds up this rank's share of `padded` (share * size elements) into `mine`.
  void SumShare(char* padded, char* mine, int64_t share, DataType type);
  char* Scratch(std::vector<char>& scratch, int64_t bytes);

  c10::intrusive_ptr<c10d::ProcessGroupGloo> group_;
  std::map<int, ino_t> sockets_;
  std::atomic<bool> aborted_ = false;
  // Kept between calls: fresh pages cost more than the copy into them.
  std::vector<char> padded_;
  std::vector<char> received_;
  std::vector<char> mine_;
};

char* GlooBackend::Scratch(std::vector<char>& scratch, int64_t bytes) {
  if (scratch.size() < static_cast<size_t>(bytes)) scratch.resize(static_cast<size_t>(bytes));
  return scratch.data();
}

void GlooBackend::SumShare(char* padded, char* mine, int64_t share, DataType type) {
  int64_t bytes = share * ElementBytes(type);
  char* received = Scratch(received_, bytes * size());
  at::Tensor in = View(padded, share * size(), type);
  at::Tensor out = View(received, share * size(), type);
  std::vector<int64_t> equal_splits;
  group_->alltoall_base(out, in, equal_splits, equal_splits)->wait();
  std::memcpy(mine, received, static_cast<size_t>(bytes));
  for (int r = 1; r < size(); ++r) Accumulate(Op::kAllReduceSum, type, mine, received + r * bytes, share);
}

void GlooBackend::SumInRankOrder(const Buffer& buffer) {
  int64_t width = ElementBytes(buffer.type);
  int64_t share = (buffer.count + size() - 1) / size();
  char* padded = Scratch(padded_, share * size() * width);
  char* mine = Scratch(mine_, share * width);
  size_t bytes = static_cast<size_t>(buffer.count * width);
  std::memcpy(padded, buffer.data, bytes);
  std::memset(padded + bytes, 0, static_cast<size_t>(share * size() * width) - bytes);
  SumShare(padded, mine, share, buffer.type);
  HitFailpoint("collective.all_reduce");
  at::Tensor in = View(mine, share, buffer.type);
  at::Tensor out = View(padded, share * size(), buffer.type);
  group_->_allgather_base(out, in)->wait();
  std::memcpy(buffer.data, padded, bytes);
}

void GlooBackend::RunOrThrow(Op op, const Buffer& buffer, int root) {
  if (op == Op::kBarrier) {
    group_->barrier()->wait();
    return;
  }
  int64_t width = ElementBytes(buffer.type);
  int64_t share = buffer.count / size();
  char* own = static_cast<char*>(buffer.data) + rank() * share * width;
  at::Tensor whole = View(buffer.data, buffer.count, buffer.type);
  std::vector<at::Tensor> tensors = {whole};
  switch (op) {
    case Op::kAllReduceSum: {
      // Two numbers have one sum, whatever the order.
      if (size() > 2) return SumInRankOrder(buffer);
      auto work = group_->allreduce(tensors);
      HitFailpoint("collective.all_reduce");
      work->wait();
      return;
    }
    case Op::kAllReduceMax: {
      c10d::AllreduceOptions maximum;
      maximum.reduceOp = c10d::ReduceOp::MAX;
      group_->allreduce(tensors, maximum)->wait();
      return;
    }
    case Op::kReduceScatterSum:
      SumShare(static_cast<char*>(buffer.data), Scratch(mine_, share * width), share, buffer.type);
      std::memcpy(own, mine_.data(), static_cast<size_t>(share * width));
      return;
    case Op::kAllGather: {
      std::memcpy(Scratch(mine_, share * width), own, static_cast<size_t>(share * width));
      at::Tensor in = View(mine_.data(), share, buffer.type);
      group_->_allgather_base(whole, in)->wait();
      return;
    }
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

}  // namespace

absl::StatusOr<std::unique_ptr<Backend>> CreateGlooBackend(const GlooOptions& options) {
  CHECK(options.store != nullptr);
  // Gloo writes to its sockets without MSG_NOSIGNAL: a dead peer must be an error, not our end.
  signal(SIGPIPE, SIG_IGN);
  try {
    auto form_timeout = std::chrono::milliseconds(absl::ToInt64Milliseconds(options.form_timeout));
    auto store = c10::make_intrusive<c10d::PrefixStore>(options.group, MakeTorchStore(options.store, form_timeout));
    auto gloo = c10d::ProcessGroupGloo::Options::create(form_timeout);
    gloo->devices.push_back(c10d::ProcessGroupGloo::createDeviceForHostname(options.fabric_address));
    std::map<int, ino_t> before = ConnectedSockets();
    auto group = c10::make_intrusive<c10d::ProcessGroupGloo>(store, options.rank, options.size, gloo);
    group->setTimeout(std::chrono::milliseconds(absl::ToInt64Milliseconds(options.timeout)));
    std::map<int, ino_t> sockets;
    for (const auto& [fd, inode] : ConnectedSockets()) {
      auto it = before.find(fd);
      if (it == before.end() || it->second != inode) sockets[fd] = inode;
    }
    return std::make_unique<GlooBackend>(std::move(group), std::move(sockets));
  } catch (const std::exception& error) {
    return absl::UnavailableError(absl::StrCat("form group ", options.group, " of ", options.size, " ranks as rank ",
                                               options.rank, " on ", options.fabric_address, ": ", error.what()));
  }
}

}  // namespace llmctl::engine::comm
