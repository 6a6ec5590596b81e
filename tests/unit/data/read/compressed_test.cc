// Compressed files: of several members or frames, padded, cut off, damaged.
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

const std::string kOne = "{\"text\": \"one\"}\n";  // 16 bytes
const std::string kTwo = "{\"text\": \"two\"}\n";

class CompressedTest : public ReadRuns {
 protected:
  // Lines that do not compress to nothing.
  static std::string Lines(int lines) {
    std::string out;
    uint64_t x = 1;
    for (int i = 0; i < lines; ++i) {
      out += "{\"text\": \"";
      for (int j = 0; j < 20; ++j) out += 'a' + (x = x * 6364136223846793005 + 1442695040888963407) / 9 % 26;
      out += "\"}\n";
    }
    return out;
  }
};

TEST_F(CompressedTest, AllMembersAndFramesAreRead) {
  EXPECT_THAT(Read("a.jsonl.gz", Gzip(kOne) + Gzip("") + Gzip(kTwo)).documents, ElementsAre("1:0 one", "2:16 two"));
  EXPECT_THAT(Read("a.jsonl.zst", Zstd(kOne) + Zstd("") + Zstd(kTwo)).documents, ElementsAre("1:0 one", "2:16 two"));
  // A record may begin in one and end in the next.
  std::string halves = Gzip(kOne.substr(0, 9)) + Gzip(kOne.substr(9));
  EXPECT_THAT(Read("b.jsonl.gz", halves).documents, ElementsAre("1:0 one"));
}

TEST_F(CompressedTest, EveryByteOfTheFileIsAccountedFor) {
  std::string content = Lines(3000);
  settings_.chunk_bytes = 4096;
  for (const InputFile& file : {AddFile("a.jsonl.gz", Gzip(content)), AddFile("a.jsonl.zst", Zstd(content)),
                                AddFile("b.jsonl.gz", content), AddFile("c.txt.gz", Gzip("x") + "garbage")}) {
    EXPECT_EQ(Read(file).file_bytes, file.bytes) << file.path;
  }
}

TEST_F(CompressedTest, ZerosAfterAMemberArePadding) {
  Result read = Read("a.jsonl.gz", Gzip(kOne) + std::string(600000, '\0') + Gzip(kTwo) + std::string(512, '\0'));

  EXPECT_THAT(read.documents, ElementsAre("1:0 one", "2:16 two"));
  EXPECT_THAT(read.rejects, IsEmpty());
  EXPECT_EQ(read.repairs, Repairs());
}

TEST_F(CompressedTest, ALittleGarbageIsCountedMuchIsDamage) {
  Result little = Read("a.jsonl.gz", Gzip(kOne) + "garbage");
  EXPECT_THAT(little.documents, ElementsAre("1:0 one"));
  EXPECT_THAT(little.rejects, IsEmpty());
  EXPECT_EQ(little.repairs.trailing_garbage, 1);

  Result much = Read("b.jsonl.gz", Gzip(kOne) + std::string(100000, 'g'));
  EXPECT_THAT(much.documents, ElementsAre("1:0 one"));
  EXPECT_THAT(much.rejects, ElementsAre("2:16 corrupt_file"));

  EXPECT_THAT(Read("c.jsonl.zst", Zstd(kOne) + "garbage").rejects, ElementsAre("2:16 corrupt_file"));
}

TEST_F(CompressedTest, WhatComesBeforeACutIsKept) {
  std::string content = Lines(20000);
  for (bool gzip : {true, false}) {
    std::string packed = gzip ? Gzip(content) : Zstd(content);
    InputFile file = AddFile(gzip ? "a.jsonl.gz" : "a.jsonl.zst", packed.substr(0, packed.size() * 3 / 4));

    Result read = Read(file);

    EXPECT_GT(read.documents.size(), 11000u);
    EXPECT_LT(read.documents.size(), 16000u);
    ASSERT_GE(read.rejects.size(), 1u);
    EXPECT_LE(read.rejects.size(), 2u);  // the last line may be cut
    EXPECT_THAT(read.rejects.back(), HasSubstr(" truncated_file"));
    Reject reject = ReadChunks(file).back().last_rejects[0];
    EXPECT_TRUE(IsDamage(reject.reason));
    EXPECT_THAT(reject.detail, HasSubstr(absl::StrCat("at byte ", file.bytes, " of the file")));
  }
}

TEST_F(CompressedTest, EveryCutIsNoticed) {
  for (bool gzip : {true, false}) {
    std::string packed = gzip ? Gzip(kOne) + Gzip(kTwo) : Zstd(kOne) + Zstd(kTwo);
    size_t whole = (gzip ? Gzip(kOne) : Zstd(kOne)).size();
    for (size_t size = 1; size < packed.size(); ++size) {
      Result read = Read(gzip ? "a.jsonl.gz" : "a.jsonl.zst", packed.substr(0, size));
      if (size == whole) {
        EXPECT_THAT(read.rejects, IsEmpty());
      } else {
        ASSERT_FALSE(read.rejects.empty()) << size;
        EXPECT_THAT(read.rejects.back(), HasSubstr("truncated_file")) << size;
      }
      if (size >= whole) {
        EXPECT_EQ(read.documents[0], "1:0 one");
      }
    }
  }
}

TEST_F(CompressedTest, DamageIsNoticedAndWhatComesBeforeIsKept) {
  std::string gzip = Gzip(kOne);
  gzip[gzip.size() - 6] ^= 1;  // in the checksum
  Result read = Read("a.jsonl.gz", gzip);
  EXPECT_THAT(read.documents, ElementsAre("1:0 one"));
  EXPECT_THAT(read.rejects, ElementsAre("2:16 corrupt_file"));

  std::string zstd = Zstd(kOne) + Zstd(kTwo);
  zstd.back() ^= 1;
  read = Read("a.jsonl.zst", zstd);
  EXPECT_EQ(read.documents[0], "1:0 one");
  EXPECT_THAT(read.rejects.back(), HasSubstr("corrupt_file"));
}

TEST_F(CompressedTest, FramesMayBeSkippableAndOfUnknownSize) {
  std::string skippable("\x50\x2a\x4d\x18\x03\0\0\0abc", 11);

  EXPECT_THAT(Read("a.jsonl.zst", skippable + Zstd(kOne, {.content_size = false}) + skippable + Zstd(kTwo)).documents,
              ElementsAre("1:0 one", "2:16 two"));
}

TEST_F(CompressedTest, ALongWindowIsReadIfItIsAllowed) {
  std::string packed = Zstd(Lines(1000), {.content_size = false, .window_log = 28});

  Result refused = Read("a.jsonl.zst", Zstd(kOne) + packed);
  EXPECT_THAT(refused.documents, ElementsAre("1:0 one"));
  EXPECT_THAT(refused.rejects, ElementsAre("2:16 window_too_large"));

  settings_.zstd_window_bytes_max = int64_t{1} << 28;
  EXPECT_EQ(Read("a.jsonl.zst", packed).documents.size(), 1000u);
}

TEST_F(CompressedTest, TheContentDecidesNotTheName) {
  Result plain = Read("a.jsonl.gz", kOne);
  EXPECT_THAT(plain.documents, ElementsAre("1:0 one"));
  EXPECT_EQ(plain.repairs.misnamed_files, 1);
  EXPECT_THAT(Read("a.jsonl.gz", Zstd(kOne)).documents, ElementsAre("1:0 one"));
  EXPECT_THAT(Read("a.jsonl.zst", Gzip(kOne)).documents, ElementsAre("1:0 one"));

  EXPECT_THAT(Read("a.jsonl", Gzip(kOne)).rejects, ElementsAre("1:0 compressed_file"));
  EXPECT_THAT(Read("a.txt", Zstd(kOne)).rejects, ElementsAre("1:0 compressed_file"));
}

TEST_F(CompressedTest, AnEmptyFileIsEmpty) {
  for (const char* name : {"a.jsonl.gz", "a.txt.zst", "a.jsonl", "a.txt"}) {
    EXPECT_THAT(ReadChunks(AddFile(name, "")), IsEmpty());
  }
  Result read = Read("b.txt.gz", Gzip(""));
  EXPECT_EQ(read.records, 0);
  EXPECT_THAT(read.rejects, IsEmpty());
}

}  // namespace
}  // namespace llmctl::data
