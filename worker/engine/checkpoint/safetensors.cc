#include "worker/engine/checkpoint/safetensors.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "absl/strings/str_cat.h"

#include "common/base/digest.h"
#include "common/base/failpoint.h"
#include "common/base/status.h"

namespace llmctl::checkpoint {
namespace {

// Hashed and then written while it is still in the cache.
constexpr size_t kChunkBytes = 1 << 20;
// How much may be dirty in the page cache before the disk is set to work: the fsync at the end then finds
// little left to do.
constexpr int64_t kWritebackBytes = 32 << 20;

class OutputFile {
 public:
  static absl::StatusOr<OutputFile> Create(const std::string& path) {
    int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd < 0) return ErrnoStatus(errno, absl::StrCat("create ", path));
    return OutputFile(fd, path);
  }
  OutputFile(OutputFile&& other) : fd_(other.fd_), path_(std::move(other.path_)) { other.fd_ = -1; }
  OutputFile& operator=(OutputFile&&) = delete;
  ~OutputFile() {
    if (fd_ >= 0) ::close(fd_);
  }

  absl::Status Write(const char* data, size_t bytes, StreamingChecksum* part) {
    while (bytes > 0) {
      size_t chunk = std::min(bytes, kChunkBytes);
      whole_->Add(data, chunk);
      if (part != nullptr) part->Add(data, chunk);
      LLM_RETURN_IF_ERROR(WriteChunk(data, chunk));
      HitFailpoint("checkpoint.write");
      data += chunk;
      bytes -= chunk;
    }
    return absl::OkStatus();
  }

  absl::Status Sync() {
    if (::fsync(fd_) != 0) return ErrnoStatus(errno, absl::StrCat("fsync ", path_));
    return absl::OkStatus();
  }

  int64_t bytes() const { return bytes_; }
  std::string Checksum() const { return whole_->Hex(); }

 private:
  OutputFile(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}

  absl::Status WriteChunk(const char* data, size_t bytes) {
    while (bytes > 0) {
      ssize_t n = ::write(fd_, data, bytes);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return ErrnoStatus(errno, absl::StrCat("write ", path_));
      data += n;
      bytes -= n;
      bytes_ += n;
    }
    if (bytes_ - started_ >= kWritebackBytes) {
      // A hint: where the file system does not know it, fsync does the work.
      ::sync_file_range(fd_, started_, bytes_ - started_, SYNC_FILE_RANGE_WRITE);
      started_ = bytes_;
    }
    return absl::OkStatus();
  }

  int fd_;
  std::string path_;
  int64_t bytes_ = 0;
  int64_t started_ = 0;
  std::unique_ptr<StreamingChecksum> whole_ = std::make_unique<StreamingChecksum>();
};

}  // namespace

absl::StatusOr<WrittenFile> WriteSafetensors(const std::string& path, absl::Span<const TensorView> tensors,
                                             const std::map<std::string, std::string>& metadata) {
  LLM_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(path));
  std::string header = SafetensorsHeaderText(tensors, metadata);
  LLM_RETURN_IF_ERROR(file.Write(header.data(), header.size(), nullptr));
  WrittenFile out;
  for (const TensorView& tensor : tensors) {
    StreamingChecksum part;
    LLM_RETURN_IF_ERROR(file.Write(static_cast<const char*>(tensor.data), tensor.bytes(), &part));
    out.tensors.push_back({tensor.name, part.Hex()});
  }
  LLM_RETURN_IF_ERROR(file.Sync());
  out.bytes = file.bytes();
  out.checksum = file.Checksum();
  return out;
}

absl::StatusOr<std::unique_ptr<SafetensorsReader>> SafetensorsReader::Open(const std::string& path) {
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return ErrnoStatus(errno, absl::StrCat("open ", path));
  struct stat info;
  if (::fstat(fd, &info) != 0 || info.st_size == 0) {
    ::close(fd);
    return absl::DataLossError(absl::StrCat(path, ": the file is empty, expected a safetensors file"));
  }
  size_t bytes = info.st_size;
  void* mapping = ::mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, fd, 0);
  int error = errno;
  ::close(fd);
  if (mapping == MAP_FAILED) return ErrnoStatus(error, absl::StrCat("map ", path));
  ::madvise(mapping, bytes, MADV_WILLNEED);
  auto reader = std::unique_ptr<SafetensorsReader>(new SafetensorsReader(static_cast<const char*>(mapping), bytes));
  absl::StatusOr<SafetensorsHeader> header = ParseSafetensorsHeader(reader->content(), bytes);
  if (!header.ok()) return Annotate(header.status(), path);
  reader->header_ = *std::move(header);
  return reader;
}

SafetensorsReader::~SafetensorsReader() { ::munmap(const_cast<char*>(mapping_), bytes_); }

}  // namespace llmctl::checkpoint
