#include "worker/data/shards/output_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <utility>

#include "absl/strings/str_cat.h"

#include "common/base/check.h"
#include "common/base/status.h"

namespace llmctl::data {
namespace {

constexpr size_t kBufferBytes = 1 << 20;

}  // namespace

absl::StatusOr<std::unique_ptr<OutputFile>> OutputFile::Create(const std::string& path) {
  std::string temporary = path + ".tmp";
  UniqueFd fd(::open(temporary.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!fd.valid()) return ErrnoStatus(errno, absl::StrCat("create ", temporary));
  return std::unique_ptr<OutputFile>(new OutputFile(std::move(fd), path));
}

absl::StatusOr<std::unique_ptr<OutputFile>> OutputFile::CreateNameless(const std::string& path) {
  LLM_ASSIGN_OR_RETURN(std::unique_ptr<OutputFile> file, Create(path));
  if (::unlink(file->temporary_.c_str()) != 0) return file->Fail("take the name from");
  file->named_ = false;
  return file;
}

OutputFile::OutputFile(UniqueFd fd, std::string path)
    : fd_(std::move(fd)), path_(std::move(path)), temporary_(path_ + ".tmp") {}

OutputFile::~OutputFile() {
  if (named_) ::unlink(temporary_.c_str());
}

absl::Status OutputFile::Fail(absl::string_view what) {
  failure_ = ErrnoStatus(errno, absl::StrCat(what, " ", temporary_, " at ", size_, " bytes"));
  return failure_;
}

absl::Status OutputFile::Append(absl::string_view bytes) {
  LLM_RETURN_IF_ERROR(failure_);
  buffer_.append(bytes.data(), bytes.size());
  size_ += bytes.size();
  return buffer_.size() < kBufferBytes ? absl::OkStatus() : Flush();
}

absl::Status OutputFile::Flush() {
  LLM_RETURN_IF_ERROR(failure_);
  absl::string_view rest = buffer_;
  while (!rest.empty()) {
    ssize_t n = ::write(fd_.get(), rest.data(), rest.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return Fail("write");
    rest.remove_prefix(n);
  }
  buffer_.clear();
  return absl::OkStatus();
}

absl::Status OutputFile::ReadAt(int64_t offset, char* out, size_t bytes) {
  CHECK(buffer_.empty()) << "flush before reading back";
  LLM_RETURN_IF_ERROR(failure_);
  while (bytes > 0) {
    ssize_t n = ::pread(fd_.get(), out, bytes, offset);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return Fail("read back");
    if (n == 0) return absl::DataLossError(absl::StrCat(temporary_, " is shorter than what was written to it"));
    out += n;
    offset += n;
    bytes -= n;
  }
  return absl::OkStatus();
}

absl::Status OutputFile::WriteAt(int64_t offset, absl::string_view bytes) {
  LLM_RETURN_IF_ERROR(failure_);
  while (!bytes.empty()) {
    ssize_t n = ::pwrite(fd_.get(), bytes.data(), bytes.size(), offset);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return Fail("write");
    offset += n;
    bytes.remove_prefix(n);
  }
  return absl::OkStatus();
}

absl::Status OutputFile::Commit() {
  CHECK(named_) << path_ << " has no name to change";
  LLM_RETURN_IF_ERROR(Flush());
  if (::fsync(fd_.get()) != 0) return Fail("fsync");
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) return Fail(absl::StrCat("rename to ", path_, ":"));
  named_ = false;
  return absl::OkStatus();
}

}  // namespace llmctl::data
