#include "worker/agent/host/evidence_archive.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "common/base/status.h"
#include "common/base/unique_fd.h"
#include "worker/agent/host/shim_set.h"

namespace llmctl::agent {
namespace {

constexpr int64_t kPieceBytesMax = 1 << 20;

}  // namespace

std::string EvidenceFileName(const GenerationId& generation) {
  return absl::StrCat(generation.job.value(), "-a", generation.attempt, "-g", generation.generation, ".tar");
}

absl::StatusOr<LogPiece> ReadEvidence(const std::string& directory, const GenerationId& generation, int64_t offset,
                                      int64_t bytes_max) {
  LLM_RETURN_IF_ERROR(ShimDirectoryName(generation, 0).status());
  std::string path = absl::StrCat(directory, "/", EvidenceFileName(generation));
  UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid() && errno == ENOENT) {
    return absl::NotFoundError(
        absl::StrCat("no evidence of attempt ", generation.attempt, " is kept: it has not ended badly here, or is ",
                     "still being collected, or is not among the ", kEvidenceMax, " that did so last"));
  }
  if (!file.valid()) return ErrnoStatus(errno, absl::StrCat("open ", path));
  struct stat info = {};
  if (::fstat(file.get(), &info) != 0) return ErrnoStatus(errno, absl::StrCat("look at ", path));
  if (bytes_max <= 0 || bytes_max > kPieceBytesMax) bytes_max = kPieceBytesMax;
  offset = std::clamp<int64_t>(offset, 0, info.st_size);
  LogPiece piece;
  piece.data.resize(static_cast<size_t>(std::min<int64_t>(bytes_max, info.st_size - offset)));
  ssize_t got = ::pread(file.get(), piece.data.data(), piece.data.size(), offset);
  if (got < 0) return ErrnoStatus(errno, absl::StrCat("read ", path));
  piece.data.resize(static_cast<size_t>(got));
  piece.next_offset = offset + got;
  piece.at_end = piece.next_offset >= info.st_size;
  return piece;
}

}  // namespace llmctl::agent
