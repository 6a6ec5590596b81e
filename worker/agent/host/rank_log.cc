#include "worker/agent/host/rank_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

#include "common/base/status.h"
#include "common/base/unique_fd.h"

namespace llmctl::agent {
namespace {

constexpr int64_t kPieceBytesMax = 1 << 20;

// The two parts of a stream as they lie on disk; either may be missing.
struct Parts {
  int64_t older_begin = 0;
  UniqueFd older;
  int64_t older_bytes = 0;
  UniqueFd present;
  int64_t present_bytes = 0;

  int64_t begin() const { return older_begin; }
  int64_t present_begin() const { return older_begin + older_bytes; }
  int64_t end() const { return present_begin() + present_bytes; }
};

int64_t SizeOf(const UniqueFd& file) {
  struct stat info = {};
  return file.valid() && ::fstat(file.get(), &info) == 0 ? info.st_size : 0;
}

// Name of the older part; empty if there is none. In the midst of a rotation there are two, and the newest counts.
std::string FindOlder(const std::string& directory, absl::string_view stream) {
  std::error_code error;
  std::string newest;
  int64_t newest_offset = -1;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
    std::string name = entry.path().filename().string();
    std::vector<absl::string_view> words = absl::StrSplit(name, '.');
    int64_t offset = 0;
    if (words.size() != 3 || words[0] != stream || !absl::SimpleAtoi(words[1], &offset)) continue;
    if (offset <= newest_offset) continue;
    newest = name;
    newest_offset = offset;
  }
  return newest;
}

Parts OpenParts(const std::string& directory, absl::string_view stream) {
  auto open = [&](const std::string& name) {
    return UniqueFd(::open(absl::StrCat(directory, "/", name).c_str(), O_RDONLY | O_CLOEXEC));
  };
  // Again if the shim has rotated meanwhile: an older part and a present one of different times do not fit.
  for (int round = 0;; ++round) {
    Parts parts;
    std::string older = FindOlder(directory, stream);
    if (!older.empty()) {
      parts.older = open(older);
      std::vector<absl::string_view> words = absl::StrSplit(older, '.');
      (void)absl::SimpleAtoi(words[1], &parts.older_begin);
    }
    parts.present = open(absl::StrCat(stream, ".log"));
    if (FindOlder(directory, stream) != older && round < 10) continue;
    parts.older_bytes = SizeOf(parts.older);
    parts.present_bytes = SizeOf(parts.present);
    return parts;
  }
}

void ReadAt(const UniqueFd& file, int64_t offset, int64_t bytes, std::string& out) {
  while (bytes > 0) {
    char buffer[64 * 1024];
    ssize_t n = ::pread(file.get(), buffer, std::min<int64_t>(bytes, sizeof buffer), offset);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;
    out.append(buffer, n);
    offset += n;
    bytes -= n;
  }
}

// Length of the UTF-8 sequence at the beginning of `bytes`; 0 if there is none.
size_t SequenceLength(absl::string_view bytes) {
  auto byte = [&](size_t i) { return static_cast<unsigned char>(bytes[i]); };
  auto follows = [&](size_t n) {
    if (bytes.size() < n) return false;
    for (size_t i = 1; i < n; ++i) {
      if ((byte(i) & 0xC0) != 0x80) return false;
    }
    return true;
  };
  if (byte(0) < 0x80) return 1;
  if (byte(0) >= 0xC2 && byte(0) <= 0xDF) return follows(2) ? 2 : 0;
  if (byte(0) >= 0xE0 && byte(0) <= 0xEF && follows(3)) {
    bool overlong = byte(0) == 0xE0 && byte(1) < 0xA0;
    bool surrogate = byte(0) == 0xED && byte(1) > 0x9F;
    return overlong || surrogate ? 0 : 3;
  }
  if (byte(0) >= 0xF0 && byte(0) <= 0xF4 && follows(4)) {
    bool overlong = byte(0) == 0xF0 && byte(1) < 0x90;
    bool beyond = byte(0) == 0xF4 && byte(1) > 0x8F;
    return overlong || beyond ? 0 : 4;
  }
  return 0;
}

}  // namespace

absl::StatusOr<LogPiece> ReadRankLog(const std::string& directory, absl::string_view stream, int64_t offset,
                                     int64_t bytes_max) {
  if (stream != "stdout" && stream != "stderr") {
    return absl::InvalidArgumentError(absl::StrCat("stream: expected stdout or stderr, found \"", stream, "\""));
  }
  if (!std::filesystem::is_directory(directory)) {
    return absl::NotFoundError(absl::StrCat("no log is kept in ", directory));
  }
  if (bytes_max <= 0 || bytes_max > kPieceBytesMax) bytes_max = kPieceBytesMax;
  Parts parts = OpenParts(directory, stream);
  if (offset < 0) offset += parts.end();
  offset = std::max(offset, parts.begin());

  LogPiece piece;
  if (offset < parts.present_begin()) {
    ReadAt(parts.older, offset - parts.older_begin, std::min(bytes_max, parts.present_begin() - offset), piece.data);
  }
  int64_t at = offset + static_cast<int64_t>(piece.data.size());
  int64_t left = bytes_max - static_cast<int64_t>(piece.data.size());
  if (at >= parts.present_begin() && at < parts.end()) {
    ReadAt(parts.present, at - parts.present_begin(), std::min(left, parts.end() - at), piece.data);
  }
  piece.next_offset = offset + static_cast<int64_t>(piece.data.size());
  piece.at_end = piece.next_offset >= parts.end();
  return piece;
}

std::string LogTail(const std::string& directory, int64_t bytes_max) {
  for (const char* stream : {"stderr", "stdout"}) {
    absl::StatusOr<LogPiece> piece = ReadRankLog(directory, stream, -bytes_max, bytes_max);
    if (!piece.ok() || piece->data.empty()) continue;
    absl::string_view data = piece->data;
    for (int cut = 0; cut < 3 && !data.empty() && (data[0] & 0xC0) == 0x80; ++cut) data.remove_prefix(1);
    return CleanUtf8(data);
  }
  return "";
}

std::string CleanUtf8(absl::string_view bytes) {
  std::string out;
  while (!bytes.empty()) {
    size_t length = SequenceLength(bytes);
    if (length == 0) {
      out += "\xEF\xBF\xBD";
      length = 1;
    } else {
      out.append(bytes.data(), length);
    }
    bytes.remove_prefix(length);
  }
  return out;
}

}  // namespace llmctl::agent
