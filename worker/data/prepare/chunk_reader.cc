#include "worker/data/prepare/chunk_reader.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "common/base/status.h"

namespace llmctl::data {
namespace {

constexpr size_t kReadBytes = size_t{256} << 10;

}  // namespace

ChunkReader::ChunkReader(const std::vector<InputFile>& files, ReaderLimits limits) : files_(files), limits_(limits) {}

ChunkReader::~ChunkReader() {
  if (fd_ >= 0) ::close(fd_);
}

absl::Status ChunkReader::OpenNext() {
  if (fd_ >= 0) ::close(fd_);
  ++file_;
  const std::string& path = files_[file_].path;
  fd_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd_ < 0) return ErrnoStatus(errno, absl::StrCat("open ", path));
  ::posix_fadvise(fd_, 0, 0, POSIX_FADV_SEQUENTIAL);
  at_end_ = false;
  place_ = {file_, 1, 0};
  return absl::OkStatus();
}

// Reads until the buffer has `bytes` or the file ends.
absl::Status ChunkReader::Fill(size_t bytes) {
  while (!at_end_ && buffer_.size() < bytes) {
    size_t have = buffer_.size();
    // In steps, as resizing clears: a small file must not cost what the limit would.
    size_t step = std::min(bytes - have, kReadBytes);
    buffer_.resize(have + step);
    ssize_t n = ::read(fd_, buffer_.data() + have, step);
    int error = errno;
    buffer_.resize(have + std::max<ssize_t>(n, 0));
    if (n < 0 && error == EINTR) continue;
    if (n < 0) return ErrnoStatus(error, absl::StrCat("read ", files_[file_].path));
    at_end_ = n == 0;
  }
  return absl::OkStatus();
}

// Byte order marks at the start of a file: that of UTF-8 is taken off; UTF-16 is not read as anything else.
void ChunkReader::TakeMarks(Chunk& chunk) {
  if (absl::StartsWith(buffer_, "\xEF\xBB\xBF")) {
    Cut(3, chunk);
    chunk.bytes.clear();
    chunk.byte_order_marks = 1;
  } else if (absl::StartsWith(buffer_, "\xFF\xFE") || absl::StartsWith(buffer_, "\xFE\xFF")) {
    chunk.rejects.push_back({place_, Reason::kUtf16File, "convert it to UTF-8 first"});
    chunk.bytes_read += files_[file_].bytes;
    buffer_.clear();
    at_end_ = true;
  }
}

// Moves the first `bytes` of the buffer to the chunk.
void ChunkReader::Cut(size_t bytes, Chunk& chunk) {
  chunk.bytes.assign(buffer_, 0, bytes);
  buffer_.erase(0, bytes);
  chunk.bytes_read += bytes;
  place_.line += std::count(chunk.bytes.begin(), chunk.bytes.end(), '\n');
  place_.byte += bytes;
}

// Passes over a line that is longer than a document may be.
absl::Status ChunkReader::SkipLine(Chunk& chunk) {
  chunk.rejects.push_back(
      {place_, Reason::kLineTooLong, absl::StrCat("longer than ", limits_.document_bytes_max, " bytes")});
  while (true) {
    size_t newline = buffer_.find('\n');
    bool found = newline != std::string::npos;
    Cut(found ? newline + 1 : buffer_.size(), chunk);
    chunk.bytes.clear();
    if (found || (at_end_ && buffer_.empty())) return absl::OkStatus();
    LLM_RETURN_IF_ERROR(Fill(limits_.chunk_bytes));
  }
}

// How much of the buffer is the next chunk; 0 if that is a line too long.
absl::StatusOr<size_t> ChunkReader::ChunkEnd() {
  bool text = files_[file_].format == InputFormat::kText;
  size_t want = text ? limits_.document_bytes_max : limits_.chunk_bytes;
  while (true) {
    LLM_RETURN_IF_ERROR(Fill(want + 1));
    if (at_end_ && (text ? buffer_.size() <= want : true)) {
      // All that is left of a .jsonl file may still hold one line too long at its end.
      size_t newline = buffer_.rfind('\n');
      size_t tail = buffer_.size() - (newline == std::string::npos ? 0 : newline + 1);
      if (text || tail <= limits_.document_bytes_max) return buffer_.size();
      return newline == std::string::npos ? 0 : newline + 1;
    }
    size_t newline = buffer_.rfind('\n', want - 1);
    if (newline != std::string::npos) return newline + 1;
    if (text) return want;
    if (want >= limits_.document_bytes_max) return 0;
    want = std::min(want * 2, limits_.document_bytes_max);
  }
}

absl::StatusOr<std::unique_ptr<Chunk>> ChunkReader::Next() {
  auto chunk = std::make_unique<Chunk>();
  while (true) {
    while (at_end_ && buffer_.empty()) {
      if (file_ + 1 == static_cast<int>(files_.size())) {
        bool empty = chunk->rejects.empty() && chunk->bytes_read == 0;
        return empty ? nullptr : std::move(chunk);
      }
      LLM_RETURN_IF_ERROR(OpenNext());
      LLM_RETURN_IF_ERROR(Fill(limits_.chunk_bytes));
      TakeMarks(*chunk);
    }
    chunk->format = files_[file_].format;
    LLM_ASSIGN_OR_RETURN(size_t end, ChunkEnd());
    if (end > 0) {
      chunk->start = place_;
      Cut(end, *chunk);
      return chunk;
    }
    if (!buffer_.empty()) LLM_RETURN_IF_ERROR(SkipLine(*chunk));
  }
}

}  // namespace llmctl::data
