#include "worker/engine/comm/ring.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

#include "common/base/check.h"
#include "common/base/instant.h"
#include "common/base/status.h"
#include "worker/engine/comm/reduce.h"

namespace llmctl::engine::comm {
namespace {

using contract::RingFileBytes;
using contract::RingHeader;
using contract::RingRecord;
using contract::RingState;

int64_t MonotonicNanoseconds() { return absl::ToInt64Nanoseconds(Now().monotonic); }

template <size_t n>
void Put(absl::string_view text, char (&out)[n]) {
  size_t bytes = std::min(text.size(), n - 1);
  std::memcpy(out, text.data(), bytes);
  std::memset(out + bytes, 0, n - bytes);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Ring>> Ring::Create(const std::string& path, int64_t capacity) {
  CHECK_GT(capacity, 0);
  int fd = open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) return ErrnoStatus(errno, absl::StrCat("create ring file ", path));
  // Allocated, not only sized: a full disk must refuse here and not kill the process at a later store.
  size_t bytes = RingFileBytes(static_cast<uint64_t>(capacity));
  int error = posix_fallocate(fd, 0, static_cast<off_t>(bytes));
  void* base = MAP_FAILED;
  if (error == 0) {
    base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    error = errno;
  }
  close(fd);
  if (base == MAP_FAILED) return ErrnoStatus(error, absl::StrCat("map ring file ", path));
  RingHeader header;
  header.capacity = static_cast<uint64_t>(capacity);
  std::memcpy(base, &header, sizeof(header));
  return std::unique_ptr<Ring>(new Ring(static_cast<char*>(base), capacity));
}

Ring::~Ring() { munmap(base_, RingFileBytes(static_cast<uint64_t>(capacity_))); }

RingRecord& Ring::At(uint64_t sequence) {
  char* record = base_ + sizeof(RingHeader) + (sequence % static_cast<uint64_t>(capacity_)) * sizeof(RingRecord);
  return *reinterpret_cast<RingRecord*>(record);
}

uint64_t Ring::Enter(const Site& site, Axis axis, Op op, const Buffer& buffer) {
  uint64_t sequence = ++last_;
  RingRecord& record = At(sequence);
  std::atomic_ref<uint64_t>(record.sequence).store(0, std::memory_order_release);
  record.number = ++numbers_[static_cast<size_t>(axis)];
  Put(AxisName(axis), record.group);
  Put(OpName(op), record.operation);
  Put(site.name, record.site);
  Put(site.detail, record.detail);
  record.count = buffer.count;
  record.element_bytes = static_cast<uint8_t>(ElementBytes(buffer.type));
  record.state = RingState::kEntered;
  record.entered_nanoseconds = MonotonicNanoseconds();
  record.done_nanoseconds = 0;
  std::atomic_ref<uint64_t>(record.sequence).store(sequence, std::memory_order_release);
  return sequence;
}

void Ring::Leave(uint64_t sequence, bool ok) {
  RingRecord& record = At(sequence);
  record.done_nanoseconds = MonotonicNanoseconds();
  record.state = ok ? RingState::kDone : RingState::kFailed;
}

}  // namespace llmctl::engine::comm
