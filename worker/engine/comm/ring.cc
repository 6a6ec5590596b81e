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
#include "common/base/file.h"
#include "common/base/instant.h"
#include "common/base/status.h"

namespace llmctl::engine::comm {
namespace {

constexpr char kMagic[8] = {'L', 'L', 'M', 'R', 'I', 'N', 'G', '1'};

struct Header {
  char magic[8];
  uint64_t record_bytes;
  uint64_t capacity;
  char reserved[40];
};
static_assert(sizeof(Header) == 64);

size_t FileBytes(int64_t capacity) { return sizeof(Header) + static_cast<size_t>(capacity) * sizeof(RingRecord); }

int64_t MonotonicNanoseconds() { return absl::ToInt64Nanoseconds(Now().monotonic); }

}  // namespace

absl::StatusOr<std::unique_ptr<Ring>> Ring::Create(const std::string& path, int64_t capacity) {
  CHECK_GT(capacity, 0);
  int fd = open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) return ErrnoStatus(errno, absl::StrCat("create ring file ", path));
  // Allocated, not only sized: a full disk must refuse here and not kill the process at a later store.
  int error = posix_fallocate(fd, 0, static_cast<off_t>(FileBytes(capacity)));
  void* base = MAP_FAILED;
  if (error == 0) {
    base = mmap(nullptr, FileBytes(capacity), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    error = errno;
  }
  close(fd);
  if (base == MAP_FAILED) return ErrnoStatus(error, absl::StrCat("map ring file ", path));
  Header header = {};
  std::memcpy(header.magic, kMagic, sizeof(kMagic));
  header.record_bytes = sizeof(RingRecord);
  header.capacity = static_cast<uint64_t>(capacity);
  std::memcpy(base, &header, sizeof(header));
  return std::unique_ptr<Ring>(new Ring(static_cast<char*>(base), capacity));
}

Ring::~Ring() { munmap(base_, FileBytes(capacity_)); }

RingRecord& Ring::At(uint64_t sequence) {
  char* record = base_ + sizeof(Header) + (sequence % static_cast<uint64_t>(capacity_)) * sizeof(RingRecord);
  return *reinterpret_cast<RingRecord*>(record);
}

uint64_t Ring::Enter(absl::string_view site, Axis axis, Op op, const Buffer& buffer) {
  uint64_t sequence = ++last_;
  RingRecord& record = At(sequence);
  std::atomic_ref<uint64_t>(record.sequence).store(0, std::memory_order_release);
  std::memset(record.site, 0, sizeof(record.site));
  std::memcpy(record.site, site.data(), std::min(site.size(), sizeof(record.site) - 1));
  record.axis = static_cast<uint8_t>(axis);
  record.operation = static_cast<uint8_t>(op);
  record.type = static_cast<uint8_t>(buffer.type);
  record.state = RingState::kEntered;
  record.count = buffer.count;
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

absl::StatusOr<std::vector<RingRecord>> ReadRing(const std::string& path) {
  LLM_ASSIGN_OR_RETURN(std::string bytes, ReadFile(path));
  Header header;
  if (bytes.size() < sizeof(header)) {
    return absl::DataLossError(absl::StrCat("ring file ", path, ": ", bytes.size(), " bytes are less than a header"));
  }
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (std::memcmp(header.magic, kMagic, sizeof(kMagic)) != 0 || header.record_bytes != sizeof(RingRecord) ||
      header.capacity > bytes.size() || bytes.size() != FileBytes(static_cast<int64_t>(header.capacity))) {
    return absl::DataLossError(absl::StrCat("ring file ", path, ": not a ring of this version"));
  }
  std::vector<RingRecord> records;
  for (uint64_t i = 0; i < header.capacity; ++i) {
    RingRecord record;
    std::memcpy(&record, bytes.data() + sizeof(header) + i * sizeof(record), sizeof(record));
    if (record.sequence != 0) records.push_back(record);
  }
  std::sort(records.begin(), records.end(),
            [](const RingRecord& a, const RingRecord& b) { return a.sequence < b.sequence; });
  return records;
}

}  // namespace llmctl::engine::comm
