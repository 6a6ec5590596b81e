#include "worker/data/shards/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_cat.h"

#include "common/base/status.h"
#include "common/base/unique_fd.h"

namespace llmctl::data {

absl::StatusOr<std::unique_ptr<MappedFile>> MappedFile::Open(const std::string& path, Access access) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return ErrnoStatus(errno, absl::StrCat("open ", path));
  struct stat info;
  if (::fstat(fd.get(), &info) != 0) return ErrnoStatus(errno, absl::StrCat("look at ", path));
  // An empty file cannot be mapped, and need not be.
  if (info.st_size == 0) return std::unique_ptr<MappedFile>(new MappedFile(nullptr, 0));
  void* mapping = ::mmap(nullptr, info.st_size, PROT_READ, MAP_SHARED, fd.get(), 0);
  if (mapping == MAP_FAILED) return ErrnoStatus(errno, absl::StrCat("map ", path));
  ::madvise(mapping, info.st_size, access == Access::kRandom ? MADV_RANDOM : MADV_SEQUENTIAL);
  return std::unique_ptr<MappedFile>(new MappedFile(static_cast<const char*>(mapping), info.st_size));
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<char*>(data_), bytes_);
}

void MappedFile::WillNeed(size_t begin, size_t bytes) const {
  static const size_t page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  size_t from = begin / page * page;
  if (bytes > 0) ::madvise(const_cast<char*>(data_) + from, begin + bytes - from, MADV_WILLNEED);
}

}  // namespace llmctl::data
