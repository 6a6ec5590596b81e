#include "coordinator/runtime/crash_marker.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"

#include "common/base/status.h"
#include "common/base/unique_fd.h"

namespace llmctl::runtime {

absl::StatusOr<CrashMarker> CrashMarker::Open(const std::string& path) {
  UniqueFd file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!file.valid()) return ErrnoStatus(errno, absl::StrCat("open ", path));
  // Allocated now: a full disk must not turn a write to the memory into a crash.
  if (int error = ::posix_fallocate(file.get(), 0, sizeof(Focus::Cell)); error != 0) {
    return ErrnoStatus(error, absl::StrCat("allocate ", path));
  }
  void* memory = ::mmap(nullptr, sizeof(Focus::Cell), PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (memory == MAP_FAILED) return ErrnoStatus(errno, absl::StrCat("map ", path));
  return CrashMarker(static_cast<Focus::Cell*>(memory));
}

CrashMarker::CrashMarker(CrashMarker&& other) noexcept : cell_(std::exchange(other.cell_, nullptr)) {}

CrashMarker::~CrashMarker() {
  if (cell_ != nullptr) ::munmap(cell_, sizeof(Focus::Cell));
}

std::optional<CrashMarker::Left> CrashMarker::left() const {
  if (cell_->stage == 0) return std::nullopt;
  Left left;
  left.stage = cell_->stage == 'l' ? Focus::Stage::kLoad : Focus::Stage::kStep;
  left.entity.assign(cell_->entity, ::strnlen(cell_->entity, Focus::kNameMax));
  return left;
}

}  // namespace llmctl::runtime
