#include "tests/fuzz/read_targets.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include <isa-l/igzip_lib.h>
#include <zstd.h>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

#include "common/base/check.h"
#include "common/base/status.h"
#include "worker/data/read/chunk_parser.h"
#include "worker/data/read/record_reader.h"

namespace llmctl::fuzz {
namespace {

// One file, in memory.
class MemoryFiles : public data::FileSystem {
 public:
  explicit MemoryFiles(absl::string_view bytes) : bytes_(bytes) {}

  absl::StatusOr<data::FileInfo> Stat(const std::string& path) const override {
    return data::FileInfo{path, static_cast<int64_t>(bytes_.size()), false};
  }
  absl::StatusOr<std::vector<data::FileInfo>> List(const std::string&, const std::string&) const override {
    return absl::UnimplementedError("one file");
  }
  absl::StatusOr<std::vector<std::string>> Glob(const std::string&) const override {
    return absl::UnimplementedError("one file");
  }
  std::string Identity(const std::string& path) const override { return path; }
  absl::StatusOr<std::unique_ptr<data::ByteSource>> OpenSource(const std::string&, int64_t offset) const override {
    return std::make_unique<File>(bytes_, offset);
  }
  absl::StatusOr<std::unique_ptr<data::RandomAccessFile>> OpenRandomAccess(const std::string&) const override {
    return std::make_unique<File>(bytes_, 0);
  }

 private:
  class File : public data::ByteSource, public data::RandomAccessFile {
   public:
    File(absl::string_view bytes, int64_t offset) : bytes_(bytes), offset_(offset) {}
    int64_t bytes() const override { return bytes_.size(); }
    absl::StatusOr<size_t> ReadAt(int64_t offset, char* out, size_t bytes) const override {
      CHECK_GE(offset, 0);
      absl::string_view part = bytes_.substr(std::min<size_t>(offset, bytes_.size()), bytes);
      std::memcpy(out, part.data(), part.size());
      return part.size();
    }
    absl::StatusOr<size_t> Read(char* out, size_t bytes_max) override {
      LLM_ASSIGN_OR_RETURN(size_t given, ReadAt(offset_, out, bytes_max));
      offset_ += given;
      return given;
    }

   private:
    const absl::string_view bytes_;
    int64_t offset_;
  };

  const absl::string_view bytes_;
};

// A small chunk, and room for no more than so many bytes in one document or line.
const data::ReadSettings kSettings{.document_bytes_max = 4096, .chunk_bytes = 64, .zstd_window_bytes_max = 1 << 20};

std::string Described(const data::ParsedChunk& parsed) {
  std::string out;
  for (const data::ParsedDocument& document : parsed.documents) {
    absl::StrAppend(&out, document.place.line, ":", document.place.byte, "+", document.part, document.id, "=",
                    document.text, "\n");
  }
  for (const data::Reject& reject : parsed.rejects) {
    absl::StrAppend(&out, reject.place.line, ":", reject.place.byte, ReasonName(reject.reason), reject.detail, "\n");
  }
  return out;
}

// All that reading from `position` on gives, and where its chunks end. Whatever the bytes, none of it is an error.
std::string ReadAll(const data::FileSystem& files, const data::InputFile& file, data::Position position,
                    std::vector<std::pair<data::Position, size_t>>& ends) {
  auto reader = data::RecordReader::Open(files, file, {.position = position}, kSettings);
  // A build without the Parquet plug-in.
  if (absl::IsUnavailable(reader.status())) return "";
  CHECK(reader.ok()) << reader.status().message();
  data::ChunkParser parser(kSettings);
  data::ParsedChunk parsed;
  std::string out;
  int64_t file_bytes = 0;
  while (true) {
    auto chunk = (*reader)->Next();
    CHECK(chunk.ok()) << chunk.status().message();
    if (*chunk == nullptr) break;
    CHECK_LE((*chunk)->bytes.size(), size_t{2 * 4096});
    file_bytes += (*chunk)->file_bytes;
    parser.Parse(**chunk, parsed);
    out += Described(parsed);
    ends.emplace_back((*chunk)->end, out.size());
  }
  if (position == data::Position()) CHECK_EQ(file_bytes, file.bytes);
  return out;
}

void RunFile(absl::string_view bytes, data::InputFormat format, data::Compression compression) {
  MemoryFiles files(bytes);
  data::InputFile file{"file", format, static_cast<int64_t>(bytes.size()), compression};
  std::vector<std::pair<data::Position, size_t>> ends, ignored;
  std::string whole = ReadAll(files, file, {}, ends);
  if (ends.empty()) return;
  // Reading on from some chunk's end gives the rest.
  const auto& [end, described] = ends[bytes.size() % ends.size()];
  CHECK_EQ(ReadAll(files, file, end, ignored), whole.substr(described));
}

void RunGzip(absl::string_view bytes) { RunFile(bytes, data::InputFormat::kJsonLines, data::Compression::kGzip); }
void RunZstd(absl::string_view bytes) { RunFile(bytes, data::InputFormat::kText, data::Compression::kZstd); }
void RunParquet(absl::string_view bytes) { RunFile(bytes, data::InputFormat::kParquet, data::Compression::kNone); }

const char kLines[] = "{\"text\": \"one\"}\n{\"id\": 2, \"text\": \"two \\u00e9\"}\r\n\n{\"text\": \"three\"}";

std::string Gzip(absl::string_view text) {
  isal_zstream stream{};
  isal_deflate_stateless_init(&stream);
  std::string out(text.size() + 1000, '\0');
  stream.next_in = reinterpret_cast<uint8_t*>(const_cast<char*>(text.data()));
  stream.avail_in = text.size();
  stream.next_out = reinterpret_cast<uint8_t*>(out.data());
  stream.avail_out = out.size();
  stream.end_of_stream = 1;
  stream.gzip_flag = IGZIP_GZIP;
  CHECK_EQ(isal_deflate_stateless(&stream), COMP_OK);
  out.resize(out.size() - stream.avail_out);
  return out;
}

std::string Zstd(absl::string_view text) {
  std::string out(ZSTD_compressBound(text.size()), '\0');
  out.resize(ZSTD_compress(out.data(), out.size(), text.data(), text.size(), 3));
  return out;
}

// Columns id (1, null | 3) and text ("one", null | "caf\u00e9 three"), in two row groups of plain pages.
std::string Parquet() {
  return absl::HexStringToBytes(
      "504152311500151c151c2c15041500150615061c0000000200000003"
      "0101000000000000001504150e150e4c15021500120000030000006f"
      "6e651500151215122c15041510150615061c00000002000000030101"
      "02001500151c151c2c15021500150615061c00000002000000020103"
      "000000000000001504151e151e4c150215001200000b000000636166"
      "c3a92074687265651500151215122c15021510150615061c00000002"
      "00000002010102001504193c35001806736368656d61150400150425"
      "021802696400150c250218047465787425004c1c0000001606192c19"
      "2c26001c150419250600191802696415001604164216422608491c15"
      "0015001502003c29061926020200000026001c150c19350006101918"
      "047465787415001604166216622674264a292c150415001502001500"
      "15101502003c160619061926020200000016a4011604260816a40100"
      "192c26001c1504192506001918026964150016021642164226ac0149"
      "1c150015001502003c29061926000200000026001c150c1935000610"
      "19180474657874150016021672167226a80226ee01292c1504150015"
      "0200150015101502003c161619061926000200000016b401160226ac"
      "0116b401002820706172717565742d6370702d6172726f7720766572"
      "73696f6e2032362e302e31192c1c00001c0000004001000050415231");
}

}  // namespace

std::vector<Target> ReadTargets() {
  return {{"gz", RunGzip, {Gzip(kLines) + Gzip(kLines) + std::string(5, '\0'), Gzip(kLines) + "garbage"}},
          {"zst", RunZstd, {Zstd(kLines) + Zstd(""), std::string("\x50\x2a\x4d\x18\x01\0\0\0x", 9) + Zstd(kLines)}},
          {"parquet", RunParquet, {Parquet()}}};
}

}  // namespace llmctl::fuzz
