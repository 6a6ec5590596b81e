#include "worker/engine/memory/arena.h"

#include <cerrno>
#include <sys/mman.h>
#include <utility>

#include "absl/strings/str_cat.h"

#include "common/base/check.h"
#include "common/base/status.h"
#include "common/layout/memory.h"

namespace llmctl::engine {

absl::StatusOr<Arena> Arena::Create(size_t bytes) {
  // mmap refuses length 0; an empty arena still needs an address.
  size_t capacity = static_cast<size_t>(layout::WholePages(static_cast<int64_t>(bytes > 0 ? bytes : 1)));
  void* base = mmap(nullptr, capacity, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED) {
    return absl::ResourceExhaustedError(
        absl::StrCat("map ", bytes, " bytes for training: ", ErrnoStatus(errno, "mmap").message(),
                     "; use a smaller micro-batch or model, or a machine with more memory"));
  }
  // Only a hint: where huge pages are off, the arena works and is a few per cent slower.
  madvise(base, capacity, MADV_HUGEPAGE);
  return Arena(static_cast<char*>(base), capacity);
}

Arena::Arena(Arena&& other) noexcept
    : base_(std::exchange(other.base_, nullptr)), capacity_(std::exchange(other.capacity_, 0)),
      used_(std::exchange(other.used_, 0)), uses_(std::move(other.uses_)) {}

Arena::~Arena() {
  if (base_ != nullptr) munmap(base_, capacity_);
}

void* Arena::AllocateBytes(size_t bytes, absl::string_view label) {
  size_t whole = static_cast<size_t>(layout::WholePages(static_cast<int64_t>(bytes)));
  CHECK_LE(used_ + whole, capacity_) << "the memory plan does not cover " << std::string(label);
  void* result = base_ + used_;
  used_ += whole;
  for (Use& use : uses_) {
    if (use.label == label) {
      use.bytes += whole;
      return result;
    }
  }
  uses_.push_back({std::string(label), whole});
  return result;
}

}  // namespace llmctl::engine
