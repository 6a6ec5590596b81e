#include "worker/data/prepare/chunk_reader.h"

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/temporary_directory.h"

namespace llmctl::data {
namespace {

using ::testing::ElementsAre;

class ChunkReaderTest : public ::testing::Test {
 protected:
  void AddFile(const std::string& name, const std::string& content) {
    std::ofstream(folder_ / name, std::ios::binary) << content;
    InputFormat format = name.ends_with(".txt") ? InputFormat::kText : InputFormat::kJsonLines;
    files_.push_back({folder_ / name, format, static_cast<int64_t>(content.size())});
    bytes_ += content.size();
  }

  // All chunks; checks that they account for every byte.
  std::vector<Chunk> ReadAll(ReaderLimits limits) {
    ChunkReader reader(files_, limits);
    std::vector<Chunk> chunks;
    int64_t bytes_read = 0;
    while (true) {
      auto chunk = reader.Next();
      EXPECT_TRUE(chunk.ok()) << chunk.status();
      if (!chunk.ok() || *chunk == nullptr) break;
      bytes_read += (*chunk)->bytes_read;
      chunks.push_back(std::move(**chunk));
    }
    EXPECT_EQ(bytes_read, bytes_);
    return chunks;
  }

  std::vector<std::string> Texts(const std::vector<Chunk>& chunks) {
    std::vector<std::string> out;
    for (const Chunk& chunk : chunks) out.push_back(chunk.bytes);
    return out;
  }

  TemporaryDirectory folder_;
  std::vector<InputFile> files_;
  int64_t bytes_ = 0;
};

TEST_F(ChunkReaderTest, CutsJsonLinesAtLineEnds) {
  AddFile("a.jsonl", "11\n222\n33\n4");

  std::vector<Chunk> chunks = ReadAll({.chunk_bytes = 8, .document_bytes_max = 100});

  EXPECT_THAT(Texts(chunks), ElementsAre("11\n222\n", "33\n4"));
  EXPECT_EQ(chunks[1].start.line, 3);
  EXPECT_EQ(chunks[1].start.byte, 7);
}

TEST_F(ChunkReaderTest, EveryChunkSizeGivesTheSameBytes) {
  std::string content;
  for (int i = 0; i < 100; ++i) content += std::string(i % 13, 'a' + i % 26) + "\n";
  AddFile("a.jsonl", content);
  for (size_t size = 1; size < 40; ++size) {
    std::string joined;
    int64_t line = 1;
    for (const Chunk& chunk : ReadAll({.chunk_bytes = size, .document_bytes_max = 50})) {
      EXPECT_EQ(chunk.start.byte, static_cast<int64_t>(joined.size()));
      EXPECT_EQ(chunk.start.line, line);
      EXPECT_TRUE(chunk.rejects.empty());
      joined += chunk.bytes;
      line += std::count(chunk.bytes.begin(), chunk.bytes.end(), '\n');
    }
    EXPECT_EQ(joined, content) << size;
  }
}

TEST_F(ChunkReaderTest, ALongLineGrowsTheChunk) {
  AddFile("a.jsonl", "1\n" + std::string(50, 'x') + "\n2\n");

  EXPECT_THAT(Texts(ReadAll({.chunk_bytes = 8, .document_bytes_max = 100})),
              ElementsAre("1\n", std::string(50, 'x') + "\n2\n"));
}

TEST_F(ChunkReaderTest, ALineBeyondTheLimitIsPassedOverAndReported) {
  AddFile("a.jsonl", "1\n" + std::string(500, 'x') + "\n2\n" + std::string(500, 'y'));

  std::vector<Chunk> chunks = ReadAll({.chunk_bytes = 8, .document_bytes_max = 100});

  EXPECT_THAT(Texts(chunks), ElementsAre("1\n", "2\n", ""));
  ASSERT_EQ(chunks[1].rejects.size(), 1u);
  EXPECT_EQ(chunks[1].rejects[0].reason, Reason::kLineTooLong);
  EXPECT_EQ(chunks[1].rejects[0].place.line, 2);
  EXPECT_EQ(chunks[1].rejects[0].place.byte, 2);
  ASSERT_EQ(chunks[2].rejects.size(), 1u);
  EXPECT_EQ(chunks[2].rejects[0].place.line, 4);
}

TEST_F(ChunkReaderTest, ATextFileIsOneChunkUpToTheLimit) {
  AddFile("a.txt", "line one\nline two\n");
  AddFile("b.txt", "aaaa\nbbbb\ncccc\ndddd\n");
  AddFile("c.txt", std::string(45, 'z'));

  EXPECT_THAT(Texts(ReadAll({.chunk_bytes = 4, .document_bytes_max = 18})),
              ElementsAre("line one\nline two\n", "aaaa\nbbbb\ncccc\n", "dddd\n", std::string(18, 'z'),
                          std::string(18, 'z'), std::string(9, 'z')));
}

TEST_F(ChunkReaderTest, ByteOrderMarksAreTakenOffOrRefused) {
  AddFile("a.jsonl",
          "\xEF\xBB\xBF"
          "1\n");
  AddFile("empty.jsonl", "");
  AddFile("b.jsonl", std::string("\xFF\xFE"
                                 "1\0\n\0",
                                 6));
  AddFile("c.txt", "text");

  std::vector<Chunk> chunks = ReadAll({});

  EXPECT_THAT(Texts(chunks), ElementsAre("1\n", "text"));
  EXPECT_EQ(chunks[0].byte_order_marks, 1);
  EXPECT_EQ(chunks[0].start.byte, 3);
  ASSERT_EQ(chunks[1].rejects.size(), 1u);
  EXPECT_EQ(chunks[1].rejects[0].reason, Reason::kUtf16File);
  EXPECT_EQ(chunks[1].rejects[0].place.file, 2);
}

TEST_F(ChunkReaderTest, AFileThatVanishedIsAnError) {
  files_.push_back({folder_ / "gone.txt", InputFormat::kText, 5});

  EXPECT_TRUE(absl::IsNotFound(ChunkReader(files_).Next().status()));
}

}  // namespace
}  // namespace llmctl::data
