#include "common/base/file.h"

#include <filesystem>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "tests/unit/seen_syncs.h"

namespace llmctl {
namespace {

class FileTest : public testing::Test {
 protected:
  std::string folder_ = testing::TempDir() + "/file_test_" +
                        testing::UnitTest::GetInstance()->current_test_info()->name();
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }
};

TEST_F(FileTest, WritesAndReplacesWholeFiles) {
  std::string path = folder_ + "/a";

  ASSERT_TRUE(WriteFileAtomically(path, "first").ok());
  ASSERT_TRUE(WriteFileAtomically(path, std::string("sec\0nd", 6)).ok());

  EXPECT_EQ(*ReadFile(path), std::string("sec\0nd", 6));
  // No temporary file is left beside it.
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1);
}

TEST_F(FileTest, MissingFileIsNotFoundAndNamesThePath) {
  absl::StatusOr<std::string> content = ReadFile(folder_ + "/missing");

  EXPECT_EQ(content.status().code(), absl::StatusCode::kNotFound);
  EXPECT_NE(content.status().message().find("/missing"), std::string::npos);
}

TEST_F(FileTest, WriteIntoMissingFolderFails) {
  EXPECT_FALSE(WriteFileAtomically(folder_ + "/no/such/folder/a", "x").ok());
}

TEST_F(FileTest, AWriteThatCannotReplaceItsTargetLeavesNothingBeside) {
  std::filesystem::create_directories(folder_ + "/a/in the way");

  EXPECT_FALSE(WriteFileAtomically(folder_ + "/a", "x").ok());

  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1);
}

TEST_F(FileTest, FoldersMadeDurablyAreNamedOnDiskOneInTheOther) {
  SeenSyncs().clear();

  ASSERT_TRUE(MakeDirectoriesDurably(folder_ + "/a/b/c/").ok());

  EXPECT_TRUE(std::filesystem::is_directory(folder_ + "/a/b/c"));
  std::string folder = std::filesystem::canonical(folder_);
  EXPECT_EQ(SeenSyncs(), (std::set<std::string>{folder, folder + "/a", folder + "/a/b"}));
  SeenSyncs().clear();
  ASSERT_TRUE(MakeDirectoriesDurably(folder_ + "/a/b/c").ok());
  EXPECT_TRUE(SeenSyncs().empty()) << "they are there";
  ASSERT_TRUE(WriteFileAtomically(folder_ + "/a/file", "x").ok());
  EXPECT_FALSE(MakeDirectoriesDurably(folder_ + "/a/file/d").ok());
}

}  // namespace
}  // namespace llmctl
