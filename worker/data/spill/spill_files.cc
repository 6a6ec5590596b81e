#include "worker/data/spill/spill_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "common/base/file.h"
#include "common/base/status.h"
#include "common/base/unique_fd.h"

namespace llmctl::data {
namespace {

class LocalWriter : public SpillWriter {
 public:
  LocalWriter(std::string path, std::string temporary, UniqueFd file, bool sync)
      : path_(std::move(path)), temporary_(std::move(temporary)), file_(std::move(file)), sync_(sync) {}

  ~LocalWriter() override {
    if (file_.valid()) ::unlink(temporary_.c_str());
  }

  absl::Status Append(absl::string_view bytes) override {
    while (!bytes.empty()) {
      ssize_t written = ::write(file_.get(), bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return ErrnoStatus(errno, absl::StrCat("write ", temporary_));
      bytes.remove_prefix(written);
    }
    return absl::OkStatus();
  }

  absl::Status Commit() override {
    if (sync_ && ::fsync(file_.get()) != 0) return ErrnoStatus(errno, absl::StrCat("fsync ", temporary_));
    if (::rename(temporary_.c_str(), path_.c_str()) != 0) {
      return ErrnoStatus(errno, absl::StrCat("rename ", temporary_, " to ", path_));
    }
    file_.Reset();
    if (!sync_) return absl::OkStatus();
    return SyncDirectory(std::filesystem::path(path_).parent_path().string());
  }

 private:
  const std::string path_;
  const std::string temporary_;
  UniqueFd file_;
  const bool sync_;
};

class LocalReader : public SpillReader {
 public:
  LocalReader(std::string path, UniqueFd file, uint64_t size)
      : path_(std::move(path)), file_(std::move(file)), size_(size) {}

  uint64_t size() const override { return size_; }

  absl::Status ReadAt(uint64_t offset, char* out, size_t bytes) const override {
    while (bytes > 0) {
      ssize_t read = ::pread(file_.get(), out, bytes, static_cast<off_t>(offset));
      if (read < 0 && errno == EINTR) continue;
      if (read < 0) return ErrnoStatus(errno, absl::StrCat("read ", path_, " at byte ", offset));
      if (read == 0) {
        return absl::DataLossError(absl::StrCat("read ", path_, ": expected ", bytes, " more bytes at byte ", offset,
                                                ", found its end; it was ", size_, " bytes long when opened"));
      }
      out += read;
      offset += read;
      bytes -= read;
    }
    return absl::OkStatus();
  }

 private:
  const std::string path_;
  const UniqueFd file_;
  const uint64_t size_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<SpillWriter>> LocalSpillFiles::Create(const std::string& path) {
  bool sync = durability_ == Durability::kSync;
  std::string folder = std::filesystem::path(path).parent_path().string();
  LLM_RETURN_IF_ERROR(sync ? MakeDirectoriesDurably(folder) : MakeDirectories(folder));
  std::string temporary = absl::StrCat(path, ".tmp.", ::getpid());
  UniqueFd file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!file.valid()) return ErrnoStatus(errno, absl::StrCat("create ", temporary));
  return std::make_unique<LocalWriter>(path, temporary, std::move(file), sync);
}

absl::StatusOr<std::unique_ptr<SpillReader>> LocalSpillFiles::Open(const std::string& path) {
  UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return ErrnoStatus(errno, absl::StrCat("open ", path));
  struct stat status;
  if (::fstat(file.get(), &status) != 0) return ErrnoStatus(errno, absl::StrCat("stat ", path));
  return std::make_unique<LocalReader>(path, std::move(file), static_cast<uint64_t>(status.st_size));
}

absl::Status LocalSpillFiles::RemoveFolder(const std::string& path) {
  std::error_code error;
  std::filesystem::remove_all(path, error);
  return error ? ErrnoStatus(error.value(), absl::StrCat("remove folder ", path)) : absl::OkStatus();
}

}  // namespace llmctl::data
