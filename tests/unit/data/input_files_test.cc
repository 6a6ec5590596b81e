#include "worker/data/prepare/input_files.h"

#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/temporary_directory.h"

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
  for (const char* name : {"b.txt", "a/z.jsonl", "a/B.TXT", "c.jsonl", "c.gz"}) Touch(name);

  EXPECT_THAT(List({folder_.path()}), ElementsAre("a/B.TXT", "a/z.jsonl", "b.txt", "c.jsonl"));
  EXPECT_THAT(ListInputs({folder_.path()}, "")->passed_over, ElementsAre(folder_ / "c.gz"));
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
  Touch("x.gz");
  std::filesystem::create_directory(folder_ / "empty");

  EXPECT_THAT(List({folder_ / "absent"})[0], HasSubstr("absent: no such file or folder"));
  EXPECT_THAT(List({folder_ / "*.txt"})[0], HasSubstr("*.txt: no such file or folder, and no file matches"));
  EXPECT_THAT(List({folder_ / "empty"})[0], HasSubstr("no .txt or .jsonl file"));
  EXPECT_THAT(List({folder_ / "x.gz"})[0], HasSubstr("unpack it first"));
}

}  // namespace
}  // namespace llmctl::data
