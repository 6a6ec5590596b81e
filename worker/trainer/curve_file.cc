#include "worker/trainer/curve_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"

#include "common/base/file.h"
#include "common/base/status.h"

namespace llmctl::trainer {

CurveFile::CurveFile(std::string path, size_t waiting_bytes_max)
    : path_(std::move(path)), waiting_bytes_max_(waiting_bytes_max) {}

CurveFile::~CurveFile() {
  // Nobody is left to be told; each failure before this one was.
  if (!waiting_.empty()) Write().IgnoreError();
}

absl::Status CurveFile::Append(const std::string& line) {
  waiting_ += line;
  absl::Status written = Write();
  if (!written.ok()) DropOldest();
  return written;
}

absl::Status CurveFile::Write() {
  if (!file_.valid()) {
    // Its parent is the checkpoints' too, and may be made here first.
    LLM_RETURN_IF_ERROR(MakeDirectoriesDurably(std::filesystem::path(path_).parent_path().string()));
    file_.Reset(::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
    if (!file_.valid()) return ErrnoStatus(errno, absl::StrCat("open ", path_));
  }
  while (!waiting_.empty()) {
    ssize_t n = ::write(file_.get(), waiting_.data(), waiting_.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoStatus(errno, absl::StrCat("write ", path_));
    torn_ = waiting_[static_cast<size_t>(n) - 1] != '\n';
    waiting_.erase(0, static_cast<size_t>(n));
  }
  return absl::OkStatus();
}

// Never the rest of a line that is half in the file.
void CurveFile::DropOldest() {
  size_t first = torn_ ? waiting_.find('\n') + 1 : 0;
  while (waiting_.size() > waiting_bytes_max_) {
    size_t end = waiting_.find('\n', first);
    if (end == std::string::npos) return;
    waiting_.erase(first, end + 1 - first);
    ++lost_lines_;
  }
}

}  // namespace llmctl::trainer
