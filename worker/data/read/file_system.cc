#include "worker/data/read/file_system.h"

#include <fcntl.h>
#include <glob.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

#include "common/base/status.h"

namespace llmctl::data {
namespace {

namespace fs = std::filesystem;

// The name that the kernel knows.
std::string LocalPath(const std::string& path) { return std::string(absl::StripPrefix(path, "file://")); }

class LocalFile : public ByteSource, public RandomAccessFile {
 public:
  LocalFile(std::string path, int fd, int64_t bytes, int64_t offset)
      : path_(std::move(path)), fd_(fd), bytes_(bytes), offset_(offset) {}
  LocalFile(const LocalFile&) = delete;
  LocalFile& operator=(const LocalFile&) = delete;
  ~LocalFile() override { ::close(fd_); }

  int64_t bytes() const override { return bytes_; }

  absl::StatusOr<size_t> ReadAt(int64_t offset, char* out, size_t bytes) const override {
    size_t done = 0;
    while (done < bytes) {
      ssize_t n = ::pread(fd_, out + done, bytes - done, offset + done);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return ErrnoStatus(errno, absl::StrCat("read ", path_, " at byte ", offset + done));
      if (n == 0) break;
      done += n;
    }
    return done;
  }

  absl::StatusOr<size_t> Read(char* out, size_t bytes_max) override {
    while (true) {
      ssize_t n = ::pread(fd_, out, bytes_max, offset_);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return ErrnoStatus(errno, absl::StrCat("read ", path_, " at byte ", offset_));
      offset_ += n;
      return n;
    }
  }

 private:
  const std::string path_;
  const int fd_;
  const int64_t bytes_;
  int64_t offset_;
};

class LocalFileSystem : public FileSystem {
 public:
  absl::StatusOr<FileInfo> Stat(const std::string& path) const override {
    struct stat found {};
    if (::stat(LocalPath(path).c_str(), &found) != 0) return ErrnoStatus(errno, absl::StrCat("input ", path));
    return FileInfo{path, found.st_size, S_ISDIR(found.st_mode)};
  }

  absl::StatusOr<std::vector<FileInfo>> List(const std::string& folder, const std::string& excluded) const override {
    std::error_code error;
    std::vector<FileInfo> files;
    fs::recursive_directory_iterator it(LocalPath(folder), error), end;
    for (; !error && it != end; it.increment(error)) {
      if (it->is_directory(error)) {
        if (!excluded.empty() && Identity(it->path().string()) == excluded) it.disable_recursion_pending();
      } else if (it->is_regular_file(error)) {
        files.push_back({it->path().string(), static_cast<int64_t>(it->file_size(error)), false});
      }
      // One that vanished meanwhile, or a link to nowhere, is not there.
      error.clear();
    }
    if (error) return ErrnoStatus(error.value(), absl::StrCat("search folder ", folder));
    std::sort(files.begin(), files.end(), [](const FileInfo& a, const FileInfo& b) { return a.path < b.path; });
    return files;
  }

  absl::StatusOr<std::vector<std::string>> Glob(const std::string& pattern) const override {
    glob_t found{};
    std::vector<std::string> paths;
    int result = ::glob(LocalPath(pattern).c_str(), 0, nullptr, &found);
    if (result == 0) paths.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
    ::globfree(&found);
    if (result == 0 || result == GLOB_NOMATCH) return paths;
    return absl::UnavailableError(absl::StrCat("search for ", pattern, ": the folders could not be read"));
  }

  std::string Identity(const std::string& path) const override {
    std::error_code ignored;
    return fs::weakly_canonical(LocalPath(path), ignored).string();
  }

  absl::StatusOr<std::unique_ptr<ByteSource>> OpenSource(const std::string& path, int64_t offset) const override {
    LLM_ASSIGN_OR_RETURN(std::unique_ptr<LocalFile> file, Open(path, offset));
    return file;
  }

  absl::StatusOr<std::unique_ptr<RandomAccessFile>> OpenRandomAccess(const std::string& path) const override {
    LLM_ASSIGN_OR_RETURN(std::unique_ptr<LocalFile> file, Open(path, 0));
    return file;
  }

 private:
  static absl::StatusOr<std::unique_ptr<LocalFile>> Open(const std::string& path, int64_t offset) {
    int fd = ::open(LocalPath(path).c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return ErrnoStatus(errno, absl::StrCat("open ", path));
    ::posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    struct stat found {};
    int64_t bytes = ::fstat(fd, &found) == 0 ? found.st_size : 0;
    return std::make_unique<LocalFile>(path, fd, bytes, offset);
  }
};

// "s3" of "s3://bucket/key"; empty for a local path, which may have a colon in it.
absl::string_view SchemeOf(absl::string_view path) {
  size_t colon = path.find("://");
  if (colon == 0 || colon == absl::string_view::npos) return "";
  for (char c : path.substr(0, colon)) {
    if (!absl::ascii_isalnum(c) && c != '+' && c != '-' && c != '.') return "";
  }
  return path.substr(0, colon);
}

}  // namespace

absl::StatusOr<std::unique_ptr<FileSystem>> FileSystemOf(absl::string_view path) {
  absl::string_view scheme = SchemeOf(path);
  if (scheme.empty() || scheme == "file") return std::make_unique<LocalFileSystem>();
  return absl::InvalidArgumentError(absl::StrCat("input ", path, ": there is no file system for ", scheme,
                                                 ":// here, only local paths and file://; copy or mount it first"));
}

}  // namespace llmctl::data
