// The disk is made full by a limit on the size of files: a write that crosses it is cut short, the next one fails.
#include "worker/trainer/curve_file.h"

#include <signal.h>
#include <sys/resource.h>

#include <filesystem>
#include <string>

#include <gtest/gtest.h>
#include "absl/strings/str_cat.h"

#include "common/base/file.h"
#include "tests/unit/temporary_directory.h"

namespace llmctl::trainer {
namespace {

class CurveFileTest : public testing::Test {
 protected:
  void SetUp() override {
    ::signal(SIGXFSZ, SIG_IGN);
    ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &usual_), 0);
  }
  void TearDown() override { LimitFiles(usual_.rlim_cur); }

  void LimitFiles(rlim_t bytes) {
    rlimit limit = usual_;
    limit.rlim_cur = bytes;
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  }

  std::string Content() const { return ReadFile(path_).value_or("no file"); }

  TemporaryDirectory folder_;
  const std::string path_ = folder_ / "curves/a1-g1.jsonl";
  rlimit usual_ = {};
};

TEST_F(CurveFileTest, LinesAreInTheFileWhenAppendReturns) {
  CurveFile file(path_);

  EXPECT_TRUE(file.Append("one\n").ok());
  EXPECT_EQ(Content(), "one\n");
  EXPECT_TRUE(file.Append("two\n").ok());
  EXPECT_EQ(Content(), "one\ntwo\n");
}

TEST_F(CurveFileTest, LinesWaitForRoomAndNoneIsTornOrRepeated) {
  CurveFile file(path_);
  LimitFiles(6);

  EXPECT_TRUE(file.Append("one\n").ok());
  absl::Status full = file.Append("two\n");
  EXPECT_FALSE(file.Append("three\n").ok());
  EXPECT_NE(full.message().find(path_), absl::string_view::npos) << full;
  EXPECT_EQ(Content(), "one\ntw");
  LimitFiles(usual_.rlim_cur);
  EXPECT_TRUE(file.Append("four\n").ok());

  EXPECT_EQ(Content(), "one\ntwo\nthree\nfour\n");
  EXPECT_EQ(file.lost_lines(), 0);
}

TEST_F(CurveFileTest, WhatStillWaitsIsWrittenAtTheEnd) {
  {
    CurveFile file(path_);
    LimitFiles(2);
    EXPECT_FALSE(file.Append("one\n").ok());
    LimitFiles(usual_.rlim_cur);
  }

  EXPECT_EQ(Content(), "one\n");
}

TEST_F(CurveFileTest, BeyondTheBoundTheOldestWholeLinesAreGivenUpAndCounted) {
  CurveFile file(path_, /*waiting_bytes_max=*/9);
  LimitFiles(2);

  for (int i = 0; i < 6; ++i) EXPECT_FALSE(file.Append(absl::StrCat("n", i, "\n")).ok());
  EXPECT_LE(file.waiting_bytes(), 9u);
  LimitFiles(usual_.rlim_cur);
  EXPECT_TRUE(file.Append("n6\n").ok());

  EXPECT_EQ(Content(), "n0\nn4\nn5\nn6\n");
  EXPECT_EQ(file.lost_lines(), 3);
}

TEST_F(CurveFileTest, FolderThatCannotBeMadeYetIsMadeLater) {
  ASSERT_TRUE(WriteFileAtomically(folder_ / "curves", "in the way").ok());
  CurveFile file(path_);

  EXPECT_FALSE(file.Append("one\n").ok());
  std::filesystem::remove(folder_ / "curves");
  EXPECT_TRUE(file.Append("two\n").ok());

  EXPECT_EQ(Content(), "one\ntwo\n");
}

}  // namespace
}  // namespace llmctl::trainer
