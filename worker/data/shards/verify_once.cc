#include "worker/data/shards/verify_once.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "common/base/digest.h"
#include "common/base/file.h"
#include "common/base/status.h"
#include "common/base/unique_fd.h"
#include "common/json/strict_json.h"
#include "worker/data/shards/index_format.h"
#include "worker/data/shards/mapped_file.h"

namespace llmctl::data {
namespace {

using nlohmann::json;

constexpr int kStampVersion = 1;
constexpr size_t kPieceBytes = size_t{4} << 20;

struct FileState {
  std::string name;
  std::string checksum;  // that the manifest asks for
  int64_t bytes = 0;
  int64_t changed_ns = 0;
  uint64_t inode = 0;
  bool operator==(const FileState&) const = default;
};

absl::StatusOr<std::vector<FileState>> StateOf(const std::string& directory, const DatasetManifest& manifest) {
  std::vector<FileState> files;
  for (const SplitInfo& split : manifest.splits) {
    files.push_back({split.name + ".bin", split.bin_checksum});
    files.push_back({split.name + ".idx", split.idx_checksum});
  }
  for (FileState& file : files) {
    struct stat info;
    std::string path = absl::StrCat(directory, "/", file.name);
    if (::stat(path.c_str(), &info) != 0) return ErrnoStatus(errno, absl::StrCat("look at ", path));
    file.bytes = info.st_size;
    file.changed_ns = int64_t{info.st_mtim.tv_sec} * 1000000000 + info.st_mtim.tv_nsec;
    file.inode = info.st_ino;
  }
  return files;
}

std::string StampText(const std::vector<FileState>& files) {
  json out = {{"version", kStampVersion}, {"files", json::array()}};
  for (const FileState& file : files) {
    out["files"].push_back({{"name", file.name},
                            {"checksum", file.checksum},
                            {"bytes", file.bytes},
                            {"changed_ns", file.changed_ns},
                            {"inode", file.inode}});
  }
  return JsonText(out, /*indented=*/true) + "\n";
}

// A stamp of other bytes, for whatever reason, is none.
bool IsStamped(const std::string& directory, const std::vector<FileState>& files) {
  absl::StatusOr<std::string> text = ReadFile(absl::StrCat(directory, "/", kVerifiedName));
  return text.ok() && *text == StampText(files);
}

absl::Status CheckFile(const std::string& path, const std::string& expected) {
  UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return ErrnoStatus(errno, absl::StrCat("open ", path));
  ::posix_fadvise(file.get(), 0, 0, POSIX_FADV_SEQUENTIAL);
  StreamingChecksum checksum;
  std::vector<char> buffer(kPieceBytes);
  while (true) {
    ssize_t n = ::read(file.get(), buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoStatus(errno, absl::StrCat("read ", path));
    if (n == 0) break;
    checksum.Add(buffer.data(), n);
  }
  if (checksum.Hex() == expected) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(path, " has checksum ", checksum.Hex(), ", the manifest says ", expected,
                                          "; prepare the dataset anew"));
}

absl::Status CheckWholeIndex(const std::string& path, const SplitInfo& split) {
  LLM_ASSIGN_OR_RETURN(std::unique_ptr<MappedFile> idx, MappedFile::Open(path, MappedFile::Access::kSequential));
  absl::StatusOr<IndexSummary> index = CheckIndex(idx->content());
  if (!index.ok()) return Annotate(index.status(), path);
  int64_t documents = index->sequences - index->continued;
  if (index->tokens == split.tokens && documents == split.documents) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(path, " has ", documents, " documents and ", index->tokens,
                                          " tokens, the manifest says ", split.documents, " and ", split.tokens,
                                          "; the files are not of one dataset"));
}

// Held until it is closed. A file system without locks has everyone verify for themselves.
UniqueFd WaitForOthers(const std::string& directory) {
  UniqueFd file(::open(absl::StrCat(directory, "/manifest.json").c_str(), O_RDONLY | O_CLOEXEC));
  while (file.valid() && ::flock(file.get(), LOCK_EX) != 0 && errno == EINTR) {
  }
  return file;
}

std::string Gigabytes(int64_t bytes) { return absl::StrFormat("%.1f GB", static_cast<double>(bytes) / 1e9); }

}  // namespace

absl::Status VerifyFiles(const std::string& directory, const DatasetManifest& manifest) {
  for (const SplitInfo& split : manifest.splits) {
    std::string stem = absl::StrCat(directory, "/", split.name);
    LLM_RETURN_IF_ERROR(CheckFile(stem + ".bin", split.bin_checksum));
    LLM_RETURN_IF_ERROR(CheckFile(stem + ".idx", split.idx_checksum));
    LLM_RETURN_IF_ERROR(CheckWholeIndex(stem + ".idx", split));
  }
  return absl::OkStatus();
}

absl::Status StampVerified(const std::string& directory, const DatasetManifest& manifest) {
  LLM_ASSIGN_OR_RETURN(std::vector<FileState> files, StateOf(directory, manifest));
  return ReplaceFile(absl::StrCat(directory, "/", kVerifiedName), StampText(files));
}

absl::StatusOr<Verification> VerifyOnce(const std::string& directory, const DatasetManifest& manifest,
                                        const VerifyLimits& limits) {
  UniqueFd turn = WaitForOthers(directory);
  LLM_ASSIGN_OR_RETURN(std::vector<FileState> files, StateOf(directory, manifest));
  Verification out;
  for (const FileState& file : files) out.bytes += file.bytes;
  if (IsStamped(directory, files)) return out;
  bool writable = ::access(directory.c_str(), W_OK) == 0;
  if (out.bytes > (writable ? limits.bytes_max : std::min(limits.bytes_max, limits.unremembered_bytes_max))) {
    out.result = Verification::Result::kNotRead;
    out.note = absl::StrCat(Gigabytes(out.bytes), " of ", directory, " were not compared with their checksums",
                            writable ? "" : " (the folder cannot be written, so that every start would read them)",
                            "; `llmctl data verify ", directory, "` does it once");
    return out;
  }
  LLM_RETURN_IF_ERROR(VerifyFiles(directory, manifest));
  out.result = Verification::Result::kReadNow;
  // Of the files as they were before they were read: one written since is read again.
  absl::Status stamped = ReplaceFile(absl::StrCat(directory, "/", kVerifiedName), StampText(files));
  if (!stamped.ok()) out.note = absl::StrCat("the next start will verify again: ", stamped.message());
  return out;
}

}  // namespace llmctl::data
