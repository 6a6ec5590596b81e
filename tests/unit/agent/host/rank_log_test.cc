#include "worker/agent/host/rank_log.h"

#include <unistd.h>

#include <filesystem>
#include <string>

#include <gtest/gtest.h>
#include "absl/strings/str_cat.h"

#include "common/base/file.h"

namespace llmctl::agent {
namespace {

class RankLogTest : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  void Write(const std::string& name, const std::string& content) {
    ASSERT_TRUE(WriteFileAtomically(folder_ + "/" + name, content).ok());
  }
  // "data@next_offset", with '$' where the end was reached.
  std::string Read(int64_t offset, int64_t bytes_max = 1000) {
    absl::StatusOr<LogPiece> piece = ReadRankLog(folder_, "stdout", offset, bytes_max);
    if (!piece.ok()) return std::string(piece.status().message());
    return absl::StrCat(piece->data, "@", piece->next_offset, piece->at_end ? "$" : "");
  }

  const std::string folder_ = absl::StrCat(testing::TempDir(), "/rank_log_test_", ::getpid());
};

TEST_F(RankLogTest, AStreamThatFitsIsReadByOffset) {
  Write("stdout.log", "0123456789");

  EXPECT_EQ(Read(0), "0123456789@10$");
  EXPECT_EQ(Read(3, 4), "3456@7");
  EXPECT_EQ(Read(7, 3), "789@10$");
  EXPECT_EQ(Read(10), "@10$");
  EXPECT_EQ(Read(99), "@99$");
}

TEST_F(RankLogTest, OffsetsGoOnOverARotation) {
  Write("stdout.20.log", "0123456789");
  Write("stdout.log", "abc");

  EXPECT_EQ(Read(25), "56789abc@33$");
  EXPECT_EQ(Read(28, 3), "89a@31");
  EXPECT_EQ(Read(30), "abc@33$");
}

TEST_F(RankLogTest, InTheMidstOfARotationTheNewestOlderPartCounts) {
  // Several times, as the order in which a folder lists its names is anybody's guess.
  for (int begin = 10; begin < 100; begin += 10) {
    std::string removed_next = absl::StrCat("stdout.", begin, ".log");
    Write(removed_next, "abcdefghij");
    Write(absl::StrCat("stdout.", begin + 10, ".log"), "0123456789");

    EXPECT_EQ(Read(begin + 15), absl::StrCat("56789@", begin + 20, "$"));

    std::filesystem::remove(folder_ + "/" + removed_next);
  }
}

TEST_F(RankLogTest, WhatIsNoLongerKeptIsSkipped) {
  Write("stdout.20.log", "0123456789");
  Write("stdout.log", "abc");

  EXPECT_EQ(Read(0, 2), "01@22");
}

TEST_F(RankLogTest, ANegativeOffsetCountsFromTheEnd) {
  Write("stdout.20.log", "0123456789");
  Write("stdout.log", "abc");

  EXPECT_EQ(Read(-5), "89abc@33$");
  EXPECT_EQ(Read(-500), "0123456789abc@33$");
}

TEST_F(RankLogTest, ATrainerThatHasPrintedNothingHasAnEmptyLog) { EXPECT_EQ(Read(0), "@0$"); }

TEST_F(RankLogTest, UnknownStreamsAndDirectoriesAreErrors) {
  EXPECT_EQ(ReadRankLog(folder_, "../shim", 0, 10).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ReadRankLog(folder_ + "/none", "stdout", 0, 10).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(RankLogTest, TheTailIsOfStderrAndOfStdoutWithoutIt) {
  Write("stdout.log", "said");
  EXPECT_EQ(LogTail(folder_, 100), "said");

  Write("stderr.log", "complained");
  EXPECT_EQ(LogTail(folder_, 100), "complained");
  EXPECT_EQ(LogTail(folder_, 3), "ned");
}

TEST_F(RankLogTest, TheTailBeginsWithAWholeCharacter) {
  Write("stderr.log", "\xE2\x82\xAC!");  // a euro sign

  EXPECT_EQ(LogTail(folder_, 3), "!");
  EXPECT_EQ(LogTail(folder_, 4), "\xE2\x82\xAC!");
}

TEST(CleanUtf8, ReplacesWhatIsNoUtf8) {
  const std::string bad = "\xEF\xBF\xBD";

  EXPECT_EQ(CleanUtf8("plain \xC3\xA4 \xF0\x9F\x98\x80"), "plain \xC3\xA4 \xF0\x9F\x98\x80");
  EXPECT_EQ(CleanUtf8("a\xFFz"), "a" + bad + "z");
  EXPECT_EQ(CleanUtf8("\xC3"), bad);                          // cut
  EXPECT_EQ(CleanUtf8("\xC0\x80"), bad + bad);                // overlong
  EXPECT_EQ(CleanUtf8("\xED\xA0\x80"), bad + bad + bad);      // surrogate
  EXPECT_EQ(CleanUtf8("\xF4\x90\x80\x80"), bad + bad + bad + bad);  // beyond U+10FFFF
}

}  // namespace
}  // namespace llmctl::agent
