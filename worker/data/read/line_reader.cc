#include "worker/data/read/line_reader.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "common/base/status.h"
#include "worker/data/read/json_line.h"

namespace llmctl::data {
namespace {

constexpr size_t kStepBytes = size_t{256} << 10;
constexpr size_t kMarkBytes = 3;  // of the longest byte order mark
constexpr absl::string_view kUtf8Mark = "\xEF\xBB\xBF";

bool IsContinuation(char byte) { return (static_cast<uint8_t>(byte) & 0xc0) == 0x80; }

// In blocks that the compiler takes many bytes of at a time, which it does not do for std::count.
int64_t CountNewlines(absl::string_view bytes) {
  constexpr size_t kBlock = 64;
  int64_t count = 0;
  size_t at = 0;
  for (; at + kBlock <= bytes.size(); at += kBlock) {
    uint8_t in_block = 0;
    for (size_t i = 0; i < kBlock; ++i) in_block += bytes.data()[at + i] == '\n';
    count += in_block;
  }
  return count + std::count(bytes.begin() + at, bytes.end(), '\n');
}

// Behind the end of the first record that ends at `from` or later; npos if none does.
size_t RecordEnd(absl::string_view bytes, size_t from) {
  size_t newline = bytes.find('\n', from);
  absl::string_view line = bytes.substr(0, newline);
  for (size_t at = line.find('\r', from); at != absl::string_view::npos; at = line.find('\r', at + 1)) {
    if (at + 1 < line.size()) return at + 1;
  }
  return newline == absl::string_view::npos ? newline : newline + 1;
}

}  // namespace

LineReader::LineReader(std::unique_ptr<ByteStream> stream, const InputFile& file, const ReadFrom& from,
                       const ReadSettings& settings)
    : stream_(std::move(stream)), input_(file), from_(from), settings_(settings), position_(from.position) {
  frames_.push_back({position_.frame_offset, position_.frame_byte});
}

absl::Status LineReader::Begin() {
  begun_ = true;
  if (position_ == Position() && from_.begin > 0) {
    LLM_RETURN_IF_ERROR(SkipToRecord());
  } else if (input_.compression != Compression::kNone) {
    LLM_RETURN_IF_ERROR(SkipToPosition(position_.frame_byte));
  }
  file_bytes_ = FileBytesTaken();
  return absl::OkStatus();
}

// The stream is at the start of a frame.
absl::Status LineReader::SkipToPosition(int64_t stream_byte) {
  std::string skipped(position_.byte > stream_byte ? kStepBytes : 0, '\0');
  while (stream_byte < position_.byte) {
    size_t bytes = std::min<int64_t>(skipped.size(), position_.byte - stream_byte);
    LLM_ASSIGN_OR_RETURN(size_t given, stream_->Read(skipped.data(), bytes));
    if (given == 0) {
      return absl::FailedPreconditionError(
          absl::StrCat("read ", input_.path, " on from byte ", position_.byte, ": it ends at byte ", stream_byte,
                       "; it is not the file any more that was being read"));
    }
    stream_byte += given;
  }
  return absl::OkStatus();
}

// The stream is at the byte before the range: a record that begins with the range follows at once.
absl::Status LineReader::SkipToRecord() {
  position_.byte = from_.begin - 1;
  while (true) {
    LLM_RETURN_IF_ERROR(Fill(kStepBytes));
    size_t end = RecordEnd(buffer_, 0);
    bool found = end != std::string::npos;
    // What follows the last byte may be needed to tell whether a record ends there.
    size_t taken = found ? end : at_end_ ? buffer_.size() : buffer_.size() - 1;
    Drop(taken);
    if (found || at_end_) break;
  }
  position_.line = 1;
  return absl::OkStatus();
}

// Reads until the buffer has `bytes` or the stream ends.
absl::Status LineReader::Fill(size_t bytes) {
  while (!at_end_ && buffer_.size() < bytes) {
    size_t have = buffer_.size();
    // In steps, as resizing clears: a small file must not cost what the limit would.
    size_t step = std::min(bytes - have, kStepBytes);
    buffer_.reserve(have + step + JsonLineParser::kPadding);
    buffer_.resize(have + step);
    absl::StatusOr<size_t> given = stream_->Read(buffer_.data() + have, step);
    buffer_.resize(have + given.value_or(0));
    if (!given.ok()) return given.status();
    at_end_ = *given == 0;
    FrameStart frame = stream_->frame();
    if (frame.offset != frames_.back().offset && !at_end_) frames_.push_back(frame);
  }
  return absl::OkStatus();
}

// Byte order marks at the start of a file: that of UTF-8 is taken off; UTF-16 is not read as anything else.
void LineReader::TakeMarks(Chunk& chunk) {
  if (absl::StartsWith(buffer_, kUtf8Mark)) {
    Drop(kUtf8Mark.size());
    chunk.repairs.byte_order_marks = 1;
  } else if (absl::StartsWith(buffer_, "\xFF\xFE") || absl::StartsWith(buffer_, "\xFE\xFF")) {
    chunk.rejects.push_back({{from_.file, 1, 0}, Reason::kUtf16File, "convert it to UTF-8 first"});
    done_ = true;
  }
}

absl::StatusOr<std::unique_ptr<Chunk>> LineReader::Next() {
  auto chunk = std::make_unique<Chunk>();
  if (done_) return nullptr;
  if (!begun_) LLM_RETURN_IF_ERROR(Begin());
  chunk->file = from_.file;
  chunk->format = input_.format;
  chunk->start = position_;
  if (position_.byte == 0) {
    LLM_RETURN_IF_ERROR(Fill(kMarkBytes));
    TakeMarks(*chunk);
  }
  if (!done_) LLM_RETURN_IF_ERROR(ReadBytes(*chunk));
  LLM_RETURN_IF_ERROR(Finish(*chunk));
  bool nothing = chunk->bytes.empty() && chunk->rejects.empty() && chunk->last_rejects.empty() &&
                 chunk->file_bytes == 0 && chunk->repairs == Repairs();
  return nothing ? nullptr : std::move(chunk);
}

absl::Status LineReader::ReadBytes(Chunk& chunk) {
  bool text = input_.format == InputFormat::kText;
  while (position_.byte < from_.end) {
    LLM_ASSIGN_OR_RETURN(size_t end, text ? TextEnd() : LinesEnd());
    if (buffer_.empty()) break;
    if (end > 0) {
      Cut(end, chunk);
      break;
    }
    LLM_RETURN_IF_ERROR(text ? SkipText(chunk) : SkipLine(chunk));
  }
  return absl::OkStatus();
}

// How much of the buffer is the next chunk; 0 if that is a line too long.
absl::StatusOr<size_t> LineReader::LinesEnd() {
  size_t line_max = settings_.document_bytes_max * kJsonBytesPerTextByte;
  size_t want = std::min<size_t>(settings_.chunk_bytes, line_max);
  while (true) {
    LLM_RETURN_IF_ERROR(Fill(want + 1));
    if (buffer_.size() <= want) return ClipToRange(buffer_.size());
    size_t newline = buffer_.rfind('\n', want - 1);
    if (newline != std::string::npos) return ClipToRange(newline + 1);
    size_t carriage_return = buffer_.rfind('\r', want - 1);
    if (carriage_return == want - 1 && buffer_[want] == '\n') {
      carriage_return = want > 1 ? buffer_.rfind('\r', want - 2) : std::string::npos;
    }
    if (carriage_return != std::string::npos) return ClipToRange(carriage_return + 1);
    if (want >= line_max) return 0;
    want = std::min(want * 2, line_max);
  }
}

// The records that begin within the range, of those that end at `lines_end`.
size_t LineReader::ClipToRange(size_t lines_end) const {
  if (from_.end == kFileEnd || lines_end == 0) return lines_end;
  int64_t limit = from_.end - position_.byte;
  if (static_cast<int64_t>(lines_end) <= limit) return lines_end;
  return std::min(lines_end, RecordEnd(buffer_, limit - 1));
}

// How much of the buffer is the next document or part of one; 0 if the document is too long.
absl::StatusOr<size_t> LineReader::TextEnd() {
  size_t max = settings_.document_bytes_max;
  LLM_RETURN_IF_ERROR(Fill(max + 1));
  if (buffer_.size() <= max) return buffer_.size();
  if (settings_.giant == GiantPolicy::kReject) return 0;
  size_t newline = buffer_.rfind('\n', max - 1);
  if (newline != std::string::npos) return newline + 1;
  size_t end = max;
  while (end > max - 3 && IsContinuation(buffer_[end])) --end;
  return IsContinuation(buffer_[end]) ? max : end;
}

// Moves the first `bytes` of the buffer to the chunk.
void LineReader::Cut(size_t bytes, Chunk& chunk) {
  chunk.place = {from_.file, position_.line, position_.byte};
  if (input_.format == InputFormat::kText) {
    chunk.part = position_.part;
    if (bytes < buffer_.size() && position_.part++ == 0) ++chunk.repairs.giants_split;
  }
  position_.line += CountNewlines(absl::string_view(buffer_).substr(0, bytes));
  position_.byte += bytes;
  std::string rest(buffer_, bytes);
  buffer_.resize(bytes);
  buffer_.reserve(bytes + JsonLineParser::kPadding);
  chunk.bytes = std::exchange(buffer_, std::move(rest));
}

void LineReader::Drop(size_t bytes) {
  position_.line += CountNewlines(absl::string_view(buffer_).substr(0, bytes));
  position_.byte += bytes;
  buffer_.erase(0, bytes);
}

// Passes over a line that is longer than it may be.
absl::Status LineReader::SkipLine(Chunk& chunk) {
  Place place{from_.file, position_.line, position_.byte};
  while (true) {
    size_t end = RecordEnd(buffer_, 0);
    bool found = end != std::string::npos;
    Drop(found ? end : at_end_ ? buffer_.size() : buffer_.size() - 1);
    if (found || at_end_) break;
    LLM_RETURN_IF_ERROR(Fill(kStepBytes));
  }
  chunk.rejects.push_back({place, Reason::kLineTooLong,
                           absl::StrCat(position_.byte - place.byte, " bytes, at most ",
                                        settings_.document_bytes_max * kJsonBytesPerTextByte)});
  return absl::OkStatus();
}

absl::Status LineReader::SkipText(Chunk& chunk) {
  Place place{from_.file, position_.line, position_.byte};
  while (!buffer_.empty()) {
    Drop(buffer_.size());
    LLM_RETURN_IF_ERROR(Fill(kStepBytes));
  }
  chunk.rejects.push_back(
      {place, Reason::kDocumentTooLong,
       absl::StrCat(position_.byte - place.byte, " bytes, at most ", settings_.document_bytes_max)});
  return absl::OkStatus();
}

// Whether this is the last chunk, and what is to be said at the end of the file.
absl::Status LineReader::Finish(Chunk& chunk) {
  if (!done_ && position_.byte < from_.end) LLM_RETURN_IF_ERROR(Fill(1));
  bool all_read = at_end_ && buffer_.empty();
  done_ = done_ || all_read || position_.byte >= from_.end;
  while (frames_.size() > 1 && frames_[1].byte <= position_.byte) frames_.pop_front();
  position_.frame_offset = frames_.front().offset;
  position_.frame_byte = frames_.front().byte;
  if (all_read) {
    chunk.repairs += stream_->repairs();
    if (const std::optional<StreamFault>& fault = stream_->fault()) {
      chunk.last_rejects.push_back({{from_.file, position_.line, position_.byte}, fault->reason, fault->detail});
    }
  }
  int64_t file_bytes = FileBytesTaken();
  chunk.file_bytes = file_bytes - file_bytes_;
  file_bytes_ = file_bytes;
  chunk.end = position_;
  if (done_) chunk.end.byte = kFileEnd;
  return absl::OkStatus();
}

int64_t LineReader::FileBytesTaken() const {
  // What is not read counts as done once the file is.
  bool abandoned = done_ && position_.byte < from_.end;
  if (abandoned) return std::max(file_bytes_, input_.bytes);
  return input_.compression == Compression::kNone ? position_.byte : stream_->offset();
}

}  // namespace llmctl::data
