#include "worker/shim/log_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"

namespace llmctl::shim {

LogFile::LogFile(std::string name, int64_t bytes_max)
    : name_(std::move(name)), part_bytes_max_(std::max<int64_t>(bytes_max / 2, 1)) {}

void LogFile::Append(absl::string_view bytes) {
  if (lost_unsaid_ > 0) {
    std::string note =
        absl::StrCat("\n[", lost_unsaid_, " bytes of output are lost here: they could not be written]\n");
    if (Write(note) == 0) lost_unsaid_ = 0;
  }
  size_t lost = Write(bytes);
  lost_bytes_ += lost;
  lost_unsaid_ += lost;
}

size_t LogFile::Write(absl::string_view bytes) {
  while (!bytes.empty()) {
    if (part_bytes_ >= part_bytes_max_) Rotate();
    if (!file_.valid()) {
      file_.Reset(::open(absl::StrCat(name_, ".log").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640));
    }
    size_t piece = std::min<size_t>(bytes.size(), part_bytes_max_ - part_bytes_);
    ssize_t n = ::write(file_.get(), bytes.data(), piece);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return bytes.size();
    part_bytes_ += n;
    bytes.remove_prefix(n);
  }
  return 0;
}

void LogFile::Rotate() {
  std::string current = absl::StrCat(name_, ".log");
  std::string renamed = absl::StrCat(name_, ".", part_begin_, ".log");
  file_.Reset();
  if (::rename(current.c_str(), renamed.c_str()) == 0) {
    // The older part goes last: at every moment the newest renamed part ends where the present one begins.
    if (!previous_.empty()) ::unlink(previous_.c_str());
    previous_ = renamed;
    part_begin_ += part_bytes_;
  } else {
    // Nothing else frees the space. The part begins again at its own offset, which the names still tell.
    ::unlink(current.c_str());
    lost_bytes_ += part_bytes_;
  }
  part_bytes_ = 0;
}

}  // namespace llmctl::shim
