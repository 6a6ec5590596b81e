#include "worker/data/read/record_reader.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/data/read/read_runs.h"

namespace llmctl::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class RecordReaderTest : public ReadRuns {
 protected:
  std::vector<std::string> Bytes(const std::vector<Chunk>& chunks) {
    std::vector<std::string> out;
    for (const Chunk& chunk : chunks) out.push_back(chunk.bytes);
    return out;
  }

  // Everything that a chunk says but the chunk before it.
  std::vector<std::string> Described(const std::vector<Chunk>& chunks) {
    std::vector<std::string> out;
    for (const Chunk& chunk : chunks) {
      std::string text = absl::StrCat(chunk.place.line, ":", chunk.place.byte, "+", chunk.part, " ", chunk.bytes);
      for (const Reject& reject : chunk.rejects) {
        absl::StrAppend(&text, " -", reject.place.line, ":", reject.place.byte, ReasonName(reject.reason));
      }
      for (const Reject& reject : chunk.last_rejects) absl::StrAppend(&text, " !", ReasonName(reject.reason));
      absl::StrAppend(&text, " ", chunk.repairs.giants_split, " ", chunk.end.line, ":", chunk.end.byte);
      out.push_back(text);
    }
    return out;
  }

  // Reading on from the end of each chunk gives the ones that follow.
  void ExpectResumable(const InputFile& file, ReadFrom from = {}) {
    std::vector<Chunk> chunks = ReadChunks(file, from);
    std::vector<std::string> described = Described(chunks);
    for (size_t i = 0; i < chunks.size(); ++i) {
      from.position = chunks[i].end;
      std::vector<std::string> rest(described.begin() + i + 1, described.end());
      EXPECT_THAT(Described(ReadChunks(file, from)), ::testing::ElementsAreArray(rest)) << file.path << " " << i;
    }
  }

  static std::string ManyLines(int lines) {
    std::string content;
    for (int i = 0; i < lines; ++i) content += std::string(i % 13, 'a' + i % 26) + (i % 7 == 3 ? "\r\n" : "\n");
    return content;
  }
};

TEST_F(RecordReaderTest, CutsJsonLinesAtLineEnds) {
  settings_.chunk_bytes = 8;

  std::vector<Chunk> chunks = ReadChunks(AddFile("a.jsonl", "11\n222\n33\n4"), {.file = 7});

  EXPECT_THAT(Bytes(chunks), ElementsAre("11\n222\n", "33\n4"));
  EXPECT_EQ(chunks[1].place, (Place{7, 3, 7}));
  EXPECT_EQ(chunks[1].start, chunks[0].end);
  EXPECT_EQ(chunks[1].end.line, 4);
}

TEST_F(RecordReaderTest, EveryChunkSizeGivesTheSameBytes) {
  std::string content = ManyLines(100);
  InputFile file = AddFile("a.jsonl", content);
  for (int size = 1; size < 40; ++size) {
    settings_.chunk_bytes = size;
    std::string joined;
    int64_t line = 1, file_bytes = 0;
    for (const Chunk& chunk : ReadChunks(file)) {
      EXPECT_EQ(chunk.place.byte, static_cast<int64_t>(joined.size()));
      EXPECT_EQ(chunk.place.line, line);
      EXPECT_TRUE(chunk.rejects.empty());
      joined += chunk.bytes;
      line += std::count(chunk.bytes.begin(), chunk.bytes.end(), '\n');
      file_bytes += chunk.file_bytes;
    }
    EXPECT_EQ(joined, content) << size;
    EXPECT_EQ(file_bytes, file.bytes);
  }
}

TEST_F(RecordReaderTest, ReadingGoesOnFromTheEndOfAnyChunk) {
  std::string content = "\xEF\xBB\xBF" + ManyLines(40) + std::string(200, 'x') + "\n" + ManyLines(20) + "last";
  std::string text = "\xEF\xBB\xBFone\ntwo \xc3\xa9\n" + std::string(90, 'y') + "\nend";
  for (int size : {1, 5, 16, 33, 1000}) {
    settings_.chunk_bytes = size;
    settings_.document_bytes_max = 32;
    ExpectResumable(AddFile("a.jsonl", content));
    ExpectResumable(AddFile("b.txt", text));
    ExpectResumable(AddFile("c.jsonl.gz", Gzip(content)));
    ExpectResumable(AddFile("d.jsonl.zst", Zstd(content.substr(0, 50)) + Zstd("") + Zstd(content.substr(50))));
    ExpectResumable(AddFile("e.jsonl.gz", Gzip(content.substr(0, 50)) + Gzip(content.substr(50)) + "garbage"));
    ExpectResumable(AddFile("f.txt.zst", Zstd(text)));
    std::string packed = Zstd(content);
    ExpectResumable(AddFile("g.jsonl.zst", packed.substr(0, packed.size() - 3)));
    ExpectResumable(AddFile("h.jsonl.gz", content));
    ExpectResumable(AddFile("i.jsonl", content), {.begin = 30, .end = 200});
  }
}

TEST_F(RecordReaderTest, ACompressedFileIsReadOnFromTheFrameThatThePlaceIsIn) {
  settings_.chunk_bytes = 8;
  std::string one = Zstd("11\n222\n33\n44\n"), two = Zstd("5\n6\n7\n8\n9\n10\n");
  InputFile file = AddFile("a.jsonl.zst", one + two);

  std::vector<Chunk> chunks = ReadChunks(file);

  ASSERT_THAT(Bytes(chunks), ElementsAre("11\n222\n", "33\n44\n5\n", "6\n7\n8\n9\n", "10\n"));
  EXPECT_EQ(chunks[0].end.frame_offset, 0);
  EXPECT_EQ(chunks[1].end.frame_offset, static_cast<int64_t>(one.size()));
  EXPECT_EQ(chunks[1].end.frame_byte, 13);
  // What lies before the frame is not looked at.
  AddFile("a.jsonl.zst", std::string(one.size(), '?') + two);
  EXPECT_THAT(Bytes(ReadChunks(file, {.position = chunks[1].end})), ElementsAre("6\n7\n8\n9\n", "10\n"));
}

TEST_F(RecordReaderTest, RangesOfAFileGiveEachRecordOnce) {
  for (const std::string& content :
       {ManyLines(30), std::string("a\rb\rcc\r\rddd\re"), std::string("one line"), std::string("\n\n\n"),
        std::string("a\r\nbb\r\n\r\nccc")}) {
    InputFile file = AddFile("a.jsonl", content);
    for (int64_t size = 1; size <= file.bytes + 1; ++size) {
      settings_.chunk_bytes = 1 + size % 9;
      std::string joined;
      int64_t lines = 0, file_bytes = 0;
      std::vector<InputRange> ranges = *CutInputs({file}, size);
      for (const InputRange& range : ranges) {
        int64_t lines_in_range = 0;
        for (const Chunk& chunk : ReadChunks(file, {.begin = range.begin, .end = range.end})) {
          EXPECT_EQ(chunk.place.byte, static_cast<int64_t>(joined.size()));
          EXPECT_EQ(chunk.place.line, lines_in_range + 1);
          joined += chunk.bytes;
          lines_in_range = chunk.end.line - 1;
          file_bytes += chunk.file_bytes;
        }
        lines += lines_in_range;
      }
      EXPECT_EQ(joined, content) << size;
      EXPECT_EQ(lines, std::count(content.begin(), content.end(), '\n'));
      EXPECT_EQ(file_bytes, file.bytes);
    }
  }
}

TEST_F(RecordReaderTest, OnlyWhatCanBeCutIsReadInRanges) {
  auto opened = RecordReader::Open(*files_, AddFile("a.txt", "text"), {.begin = 2}, settings_);

  EXPECT_TRUE(absl::IsInvalidArgument(opened.status()));
  EXPECT_THAT(opened.status().message(), HasSubstr("only Parquet, and JSON lines that are not compressed"));
}

TEST_F(RecordReaderTest, ALongLineGrowsTheChunk) {
  settings_.chunk_bytes = 8;

  EXPECT_THAT(Bytes(ReadChunks(AddFile("a.jsonl", "1\n" + std::string(50, 'x') + "\n2\n"))),
              ElementsAre("1\n", std::string(50, 'x') + "\n2\n"));
}

TEST_F(RecordReaderTest, ALineBeyondTheLimitIsPassedOverAndReported) {
  settings_.chunk_bytes = 8;
  settings_.document_bytes_max = 50;

  std::vector<Chunk> chunks = ReadChunks(
      AddFile("a.jsonl", "1\n" + std::string(500, 'x') + "\n2\n" + std::string(1000000, 'y')), {.file = 3});

  EXPECT_THAT(Bytes(chunks), ElementsAre("1\n", "2\n", ""));
  ASSERT_EQ(chunks[1].rejects.size(), 1u);
  EXPECT_EQ(chunks[1].rejects[0].reason, Reason::kLineTooLong);
  EXPECT_EQ(chunks[1].rejects[0].place, (Place{3, 2, 2}));
  ASSERT_EQ(chunks[2].rejects.size(), 1u);
  EXPECT_EQ(chunks[2].rejects[0].place.line, 4);
  EXPECT_EQ(chunks[2].rejects[0].detail, "1000000 bytes, at most 100");
}

TEST_F(RecordReaderTest, ATextFileIsOneDocumentUpToTheLimit) {
  settings_.chunk_bytes = 4;
  settings_.document_bytes_max = 18;

  EXPECT_THAT(Read("a.txt", "line one\nline two\n").documents, ElementsAre("1:0 line one\nline two\n"));
  Result split = Read("b.txt", "aaaa\nbbbb\ncccc\ndddd\n");
  EXPECT_THAT(split.documents, ElementsAre("1:0 aaaa\nbbbb\ncccc\n", "4:15+1 dddd\n"));
  EXPECT_EQ(split.repairs.giants_split, 1);
  EXPECT_EQ(split.records, 1);
  EXPECT_THAT(Bytes(ReadChunks(AddFile("c.txt", std::string(45, 'z')))),
              ElementsAre(std::string(18, 'z'), std::string(18, 'z'), std::string(9, 'z')));
}

TEST_F(RecordReaderTest, ASplitTextKeepsItsCharactersWhole) {
  settings_.document_bytes_max = 18;
  std::string text = "x";
  while (text.size() < 60) text += "\xe2\x82\xac";

  Result split = Read("a.txt", text);

  EXPECT_THAT(split.rejects, IsEmpty());
  EXPECT_EQ(split.repairs.invalid_utf8, 0);
  EXPECT_GT(split.documents.size(), 3u);
}

TEST_F(RecordReaderTest, GiantsAreRejectedWhereThatIsThePolicy) {
  settings_.document_bytes_max = 18;
  settings_.giant = GiantPolicy::kReject;

  EXPECT_THAT(Read("a.txt", std::string(1000000, 'z')).rejects, ElementsAre("1:0 document_too_long"));
  EXPECT_THAT(Read("a.jsonl", "{\"text\": \"12345678901234567890\"}\n{\"text\": \"a\"}").rejects,
              ElementsAre("1:0 document_too_long"));
}

TEST_F(RecordReaderTest, AGiantTextInJsonIsSplit) {
  settings_.document_bytes_max = 24;

  Result split = Read("a.jsonl", "{\"id\": 7, \"text\": \"1234567890\\n12345678901234\"}");

  EXPECT_THAT(split.documents, ElementsAre("1:0 7=1234567890\n", "1:0+1 7=12345678901234"));
  EXPECT_EQ(split.repairs.giants_split, 1);
  EXPECT_EQ(split.records, 1);
}

TEST_F(RecordReaderTest, AFileThatVanishedIsAnError) {
  InputFile file{folder_ / "gone.txt", InputFormat::kText, 5};

  EXPECT_TRUE(absl::IsNotFound(RecordReader::Open(*files_, file, {}, settings_).status()));
}

TEST_F(RecordReaderTest, ACompressedFileThatGotShorterIsNotReadOn) {
  InputFile file = AddFile("a.jsonl.gz", Gzip("1\n2\n"));
  auto reader = RecordReader::Open(*files_, file, {.position = {.byte = 1000, .line = 5}}, settings_);
  ASSERT_TRUE(reader.ok());

  absl::Status status = (*reader)->Next().status();

  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_THAT(status.message(), HasSubstr("not the file any more"));
}

TEST(ReadSettings, AllFaultsAreNamedAtOnce) {
  ReadSettings settings{.text_field = "a..b", .id_field = "x\\y", .document_bytes_max = 0, .chunk_bytes = -1,
                        .zstd_window_bytes_max = int64_t{1} << 40};

  absl::Status status = settings.Validate();

  EXPECT_TRUE(absl::IsInvalidArgument(status));
  for (const char* part : {"textField \"a..b\": a name in it is empty", "idField \"x\\y\": a backslash",
                           "documentBytesMax is 0", "chunkBytes is -1", "zstdWindowBytesMax is 1099511627776"}) {
    EXPECT_THAT(status.message(), HasSubstr(part));
  }
  EXPECT_TRUE(ReadSettings().Validate().ok());
  EXPECT_TRUE((ReadSettings{.id_field = ""}).Validate().ok());
  EXPECT_FALSE((ReadSettings{.text_field = ""}).Validate().ok());
}

}  // namespace
}  // namespace llmctl::data
