#include "worker/data/read/record_reader.h"

#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "common/base/status.h"
#include "worker/data/read/byte_stream.h"
#include "worker/data/read/decoders.h"
#include "worker/data/read/line_reader.h"
#include "worker/data/read/parquet_reader.h"

namespace llmctl::data {
namespace {

// Of a file, or part of one, that holds nothing to be read; what is to be said of it is said once.
class NoRecords : public RecordReader {
 public:
  explicit NoRecords(std::unique_ptr<Chunk> last) : last_(std::move(last)) {}
  absl::StatusOr<std::unique_ptr<Chunk>> Next() override { return std::move(last_); }

 private:
  std::unique_ptr<Chunk> last_;
};

// A file that is not compressed by its name is read from anywhere: what it is shows at its start.
absl::StatusOr<std::optional<Reason>> ForeignKind(const FileSystem& files, const InputFile& file) {
  LLM_ASSIGN_OR_RETURN(std::unique_ptr<ByteSource> source, files.OpenSource(file.path, 0));
  char start[4];
  size_t have = 0;
  while (have < sizeof start) {
    LLM_ASSIGN_OR_RETURN(size_t given, source->Read(start + have, sizeof start - have));
    if (given == 0) break;
    have += given;
  }
  absl::string_view bytes(start, have);
  if (BeginsAsGzip(bytes) || BeginsAsZstd(bytes)) return Reason::kCompressedFile;
  if (bytes.substr(0, 2) == "\xFF\xFE" || bytes.substr(0, 2) == "\xFE\xFF") return Reason::kUtf16File;
  return std::nullopt;
}

std::unique_ptr<Chunk> ForeignChunk(const InputFile& file, const ReadFrom& from, Reason reason) {
  // Said by whoever reads the first byte.
  if (from.begin > 0 || from.position.byte > 0) return nullptr;
  auto chunk = std::make_unique<Chunk>();
  chunk->file = from.file;
  chunk->format = file.format;
  chunk->end.byte = kFileEnd;
  chunk->file_bytes = file.bytes;
  chunk->rejects.push_back({{from.file, 1, 0},
                            reason,
                            reason == Reason::kUtf16File ? "convert it to UTF-8 first"
                                                         : "its name must end in .gz or .zst to be decompressed"});
  return chunk;
}

StreamOptions StreamOptionsOf(const InputFile& file, const ReadFrom& from, const ReadSettings& settings) {
  StreamOptions options{.zstd_window_bytes_max = settings.zstd_window_bytes_max};
  if (file.compression != Compression::kNone) {
    options.start = {from.position.frame_offset, from.position.frame_byte};
  } else if (from.position == Position() && from.begin > 0) {
    options.start.byte = from.begin - 1;
  } else {
    options.start.byte = from.position.byte;
  }
  return options;
}

}  // namespace

absl::StatusOr<std::unique_ptr<RecordReader>> RecordReader::Open(const FileSystem& files, const InputFile& file,
                                                                 const ReadFrom& from, const ReadSettings& settings) {
  LLM_RETURN_IF_ERROR(settings.Validate());
  if ((from.begin > 0 || from.end != kFileEnd) && !CanBeCut(file)) {
    return absl::InvalidArgumentError(absl::StrCat("read bytes ", from.begin, " to ", from.end, " of ", file.path,
                                                   ": only Parquet, and JSON lines that are not compressed, can be cut"));
  }
  if (from.position.byte == kFileEnd) return std::make_unique<NoRecords>(nullptr);
  if (file.format == InputFormat::kParquet) return ParquetReader::Open(files, file, from, settings);
  if (file.compression == Compression::kNone) {
    LLM_ASSIGN_OR_RETURN(std::optional<Reason> foreign, ForeignKind(files, file));
    if (foreign) return std::make_unique<NoRecords>(ForeignChunk(file, from, *foreign));
  }
  LLM_ASSIGN_OR_RETURN(std::unique_ptr<ByteStream> stream,
                       OpenByteStream(files, file, StreamOptionsOf(file, from, settings)));
  return std::make_unique<LineReader>(std::move(stream), file, from, settings);
}

}  // namespace llmctl::data
