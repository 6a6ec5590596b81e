// Reads JSON lines and text (record_reader.h).
//
// Records of JSON lines end at LF, or at a CR that none follows: such a CR cannot stand within a line of JSON, and in
// a file with the line ends of the old Mac OS it is all there is. Lines are counted at LF.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"

#include "worker/data/read/byte_stream.h"
#include "worker/data/read/record_reader.h"

namespace llmctl::data {

class LineReader : public RecordReader {
 public:
  // `stream` is of a frame at or before from.position or, with none and a range that begins later than the file, from
  // the byte before the range.
  LineReader(std::unique_ptr<ByteStream> stream, const InputFile& file, const ReadFrom& from,
             const ReadSettings& settings);

  absl::StatusOr<std::unique_ptr<Chunk>> Next() override;

 private:
  absl::Status Begin();
  absl::Status SkipToPosition(int64_t stream_byte);
  absl::Status SkipToRecord();
  absl::Status Fill(size_t bytes);
  void TakeMarks(Chunk& chunk);
  absl::Status ReadBytes(Chunk& chunk);
  absl::StatusOr<size_t> LinesEnd();
  absl::StatusOr<size_t> TextEnd();
  size_t ClipToRange(size_t lines_end) const;
  void Cut(size_t bytes, Chunk& chunk);
  absl::Status SkipLine(Chunk& chunk);
  absl::Status SkipText(Chunk& chunk);
  void Drop(size_t bytes);
  absl::Status Finish(Chunk& chunk);
  int64_t FileBytesTaken() const;

  const std::unique_ptr<ByteStream> stream_;
  const InputFile input_;
  const ReadFrom from_;
  const ReadSettings settings_;
  bool begun_ = false;
  bool at_end_ = false;  // of the stream: the buffer holds the rest
  bool done_ = false;
  std::string buffer_;
  Position position_;              // of the buffer's first byte
  std::deque<FrameStart> frames_;  // whose bytes are in the buffer
  int64_t file_bytes_ = 0;         // told in chunks so far, of the file from its start
};

}  // namespace llmctl::data
