// Files made from strings, and what reading them gives.
#pragma once

#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <isa-l/igzip_lib.h>
#include <zstd.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "tests/unit/temporary_directory.h"
#include "worker/data/read/chunk_parser.h"
#include "worker/data/read/record_reader.h"

namespace llmctl::data {

// A gzip member.
inline std::string Gzip(const std::string& text) {
  isal_zstream stream{};
  isal_deflate_stateless_init(&stream);
  std::string out(text.size() + 1000, '\0');
  stream.next_in = reinterpret_cast<uint8_t*>(const_cast<char*>(text.data()));
  stream.avail_in = text.size();
  stream.next_out = reinterpret_cast<uint8_t*>(out.data());
  stream.avail_out = out.size();
  stream.end_of_stream = 1;
  stream.gzip_flag = IGZIP_GZIP;
  EXPECT_EQ(isal_deflate_stateless(&stream), COMP_OK);
  out.resize(out.size() - stream.avail_out);
  return out;
}

struct ZstdOptions {
  bool content_size = true;
  int window_log = 0;
};

// A zstd frame with a checksum.
inline std::string Zstd(const std::string& text, const ZstdOptions& options = {}) {
  ZSTD_CCtx* context = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
  if (options.window_log > 0) ZSTD_CCtx_setParameter(context, ZSTD_c_windowLog, options.window_log);
  std::string out(ZSTD_compressBound(text.size()), '\0');
  ZSTD_inBuffer from{text.data(), text.size(), 0};
  ZSTD_outBuffer to{out.data(), out.size(), 0};
  if (!options.content_size) {
    // Streamed: the size is not known when the frame begins.
    EXPECT_FALSE(ZSTD_isError(ZSTD_compressStream2(context, &to, &from, ZSTD_e_flush)));
  }
  EXPECT_EQ(ZSTD_compressStream2(context, &to, &from, ZSTD_e_end), 0u);
  ZSTD_freeCCtx(context);
  out.resize(to.pos);
  return out;
}

class ReadRuns : public ::testing::Test {
 protected:
  // Formats are told by the name.
  InputFile AddFile(const std::string& name, const std::string& content) {
    std::ofstream(folder_ / name, std::ios::binary) << content;
    absl::StatusOr<InputList> list = ListInputs({folder_ / name}, "");
    EXPECT_TRUE(list.ok()) << list.status();
    return list->files[0];
  }

  // The chunks of a file, or of a part of it; each begins where the one before ends.
  std::vector<Chunk> ReadChunks(const InputFile& file, const ReadFrom& from = {}) {
    std::vector<Chunk> chunks;
    absl::StatusOr<std::unique_ptr<RecordReader>> reader = RecordReader::Open(*files_, file, from, settings_);
    EXPECT_TRUE(reader.ok()) << reader.status();
    while (reader.ok()) {
      auto chunk = (*reader)->Next();
      EXPECT_TRUE(chunk.ok()) << chunk.status();
      if (!chunk.ok() || *chunk == nullptr) break;
      if (!chunks.empty()) {
        EXPECT_EQ((*chunk)->start, chunks.back().end);
      }
      chunks.push_back(std::move(**chunk));
    }
    if (!chunks.empty()) {
      EXPECT_EQ(chunks.back().end.byte, kFileEnd);
    }
    return chunks;
  }

  struct Result {
    std::vector<std::string> documents;  // "line:byte id=text", with +n for a part
    std::vector<std::string> rejects;    // "line:byte reason"
    Repairs repairs;
    int64_t records = 0;
    int64_t blank_lines = 0;
    int64_t file_bytes = 0;
    int64_t lines = 0;
  };

  Result Parse(std::vector<Chunk> chunks) {
    Result out;
    ChunkParser parser(settings_);
    ParsedChunk parsed;
    for (Chunk& chunk : chunks) {
      out.lines = chunk.end.line - 1;
      parser.Parse(chunk, parsed);
      for (const ParsedDocument& document : parsed.documents) {
        std::string part = document.part > 0 ? absl::StrCat("+", document.part) : "";
        std::string id = document.id.empty() ? "" : absl::StrCat(document.id, "=");
        out.documents.push_back(
            absl::StrCat(document.place.line, ":", document.place.byte, part, " ", id, document.text));
      }
      for (const Reject& reject : parsed.rejects) {
        out.rejects.push_back(
            absl::StrCat(reject.place.line, ":", reject.place.byte, " ", ReasonName(reject.reason)));
      }
      out.repairs += parsed.repairs;
      out.records += parsed.records;
      out.blank_lines += parsed.blank_lines;
      out.file_bytes += parsed.file_bytes;
    }
    return out;
  }

  Result Read(const InputFile& file, const ReadFrom& from = {}) { return Parse(ReadChunks(file, from)); }
  Result Read(const std::string& name, const std::string& content) { return Read(AddFile(name, content)); }

  TemporaryDirectory folder_;
  std::unique_ptr<FileSystem> files_ = *FileSystemOf("");
  ReadSettings settings_;
};

}  // namespace llmctl::data
