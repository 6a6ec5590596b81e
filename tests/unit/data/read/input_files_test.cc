#include "worker/data/read/input_files.h"

#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/temporary_directory.h"
#include "worker/data/read/record.h"

namespace llmctl::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ListInputsTest : public ::testing::Test {
 protected:
  void Touch(const std::string& name) {
    std::filesystem::create_directories(std::filesystem::path(folder_ / name).parent_path());
    std::ofstream(folder_ / name) << "x";
  }
  // Names relative to the folder, or the error's message.
  std::vector<std::string> List(const std::vector<std::string>& inputs) {
    absl::StatusOr<InputList> list = ListInputs(inputs, folder_ / "out");
    if (!list.ok()) return {std::string(list.status().message())};
    std::vector<std::string> names;
    for (const InputFile& file : list->files) names.push_back(file.path.substr(folder_.path().size() + 1));
    return names;
  }

  TemporaryDirectory folder_;
};

TEST_F(ListInputsTest, FoldersAreSearchedInDepthAndSorted) {
  for (const char* name : {"b.txt", "a/z.jsonl", "a/B.TXT", "c.jsonl", "c.gz", "d.json", "e.jsonl.gz", "f.txt.ZST",
                           "g.parquet", "h.parquet.gz", "i.csv.gz"}) {
    Touch(name);
  }

  EXPECT_THAT(List({folder_.path()}), ElementsAre("a/B.TXT", "a/z.jsonl", "b.txt", "c.jsonl", "d.json", "e.jsonl.gz",
                                                  "f.txt.ZST", "g.parquet"));
  EXPECT_THAT(ListInputs({folder_.path()}, "")->passed_over,
              ElementsAre(folder_ / "c.gz", folder_ / "h.parquet.gz", folder_ / "i.csv.gz"));
}

TEST_F(ListInputsTest, GlobsAndOrderOfTheArgumentsAreKept) {
  for (const char* name : {"1.txt", "2.txt", "3.jsonl"}) Touch(name);

  EXPECT_THAT(List({folder_ / "3.jsonl", folder_ / "?.txt"}), ElementsAre("3.jsonl", "1.txt", "2.txt"));
}

TEST_F(ListInputsTest, AFileIsReadOnceHoweverOftenItIsNamed) {
  Touch("1.txt");

  EXPECT_THAT(List({folder_ / "1.txt", folder_.path(), folder_ / "./1.txt"}), ElementsAre("1.txt"));
}

TEST_F(ListInputsTest, TheOutputFolderIsNoInput) {
  Touch("1.txt");
  Touch("out/rejects.jsonl");

  EXPECT_THAT(List({folder_.path()}), ElementsAre("1.txt"));
}

TEST_F(ListInputsTest, NothingFoundIsAnErrorThatNamesIt) {
  Touch("x.xz");
  std::filesystem::create_directory(folder_ / "empty");

  EXPECT_THAT(List({folder_ / "absent"})[0], HasSubstr("absent: no such file or folder"));
  EXPECT_THAT(List({folder_ / "*.txt"})[0], HasSubstr("*.txt: no such file or folder, and no file matches"));
  EXPECT_THAT(List({folder_ / "empty"})[0], HasSubstr("no file among the inputs has a name"));
  EXPECT_THAT(List({folder_ / "x.xz"})[0], HasSubstr("unpack it first"));
}

TEST_F(ListInputsTest, TheNameTellsTheFormat) {
  for (const char* name : {"a.txt", "b.json", "c.jsonl.gz", "d.TXT.zst", "e.parquet"}) Touch(name);

  std::vector<InputFile> files = ListInputs({folder_.path()}, "")->files;

  ASSERT_EQ(files.size(), 5u);
  EXPECT_EQ(files[0].format, InputFormat::kText);
  EXPECT_EQ(files[0].compression, Compression::kNone);
  EXPECT_EQ(files[1].format, InputFormat::kJsonLines);
  EXPECT_EQ(files[2].format, InputFormat::kJsonLines);
  EXPECT_EQ(files[2].compression, Compression::kGzip);
  EXPECT_EQ(files[3].format, InputFormat::kText);
  EXPECT_EQ(files[3].compression, Compression::kZstd);
  EXPECT_EQ(files[4].format, InputFormat::kParquet);
  EXPECT_EQ(files[4].bytes, 1);
}

TEST_F(ListInputsTest, AForcedFormatTakesAnyName) {
  for (const char* name : {"a.log", "b.txt", "c.data.gz"}) Touch(name);

  InputList list = *ListInputs({folder_.path()}, "", InputFormat::kJsonLines);

  ASSERT_EQ(list.files.size(), 3u);
  for (const InputFile& file : list.files) EXPECT_EQ(file.format, InputFormat::kJsonLines) << file.path;
  EXPECT_EQ(list.files[2].compression, Compression::kGzip);
  EXPECT_TRUE(list.passed_over.empty());
}

TEST_F(ListInputsTest, SchemesOtherThanFileAreRefusedByName) {
  Touch("1.txt");

  EXPECT_THAT(List({"s3://bucket/a.txt"})[0], HasSubstr("no file system for s3:// here, only local paths and file://"));
  EXPECT_EQ(ListInputs({"file://" + (folder_ / "1.txt")}, "")->files[0].bytes, 1);
}

TEST(CutInputs, OnlyJsonLinesThatAreNotCompressedAreCut) {
  std::vector<InputFile> files = {{"a.jsonl", InputFormat::kJsonLines, 250},
                                  {"b.jsonl.gz", InputFormat::kJsonLines, 250, Compression::kGzip},
                                  {"c.txt", InputFormat::kText, 250},
                                  {"d.jsonl", InputFormat::kJsonLines, 100},
                                  {"e.jsonl", InputFormat::kJsonLines, 0}};

  std::vector<InputRange> cut = *CutInputs(files, 100);
  std::vector<std::string> ranges;
  for (const InputRange& range : cut) {
    ranges.push_back(std::to_string(range.file) + ":" + std::to_string(range.begin) + "-" +
                     (range.end == kFileEnd ? "" : std::to_string(range.end)));
  }

  EXPECT_THAT(ranges, ElementsAre("0:0-100", "0:100-200", "0:200-", "1:0-", "2:0-", "3:0-", "4:0-"));
}

}  // namespace
}  // namespace llmctl::data
