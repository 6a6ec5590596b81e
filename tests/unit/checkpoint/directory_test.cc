#include "worker/engine/checkpoint/directory.h"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/temporary_directory.h"

namespace llmctl::checkpoint {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

void Touch(const std::string& path) {
  fs::create_directories(fs::path(path).parent_path());
  std::ofstream(path) << "x";
}

TEST(CheckpointName, RoundTripsAndRefusesOtherSpellings) {
  EXPECT_EQ(FormatCheckpointName({120, 2, 13}), "step-00000120-a2-g13");
  EXPECT_EQ(*ParseCheckpointName("step-00000120-a2-g13"), (CheckpointName{120, 2, 13}));
  EXPECT_EQ(*ParseCheckpointName("step-123456789-a1-g1"), (CheckpointName{123456789, 1, 1}));
  for (const char* name : {"step-120-a2-g13", "step-00000120-a2", "step-00000120-a2-g13-x", "step-00000120-a02-g13",
                           "step--0000120-a2-g13", "step-00000120-2-g13", "", "curves"}) {
    EXPECT_FALSE(ParseCheckpointName(name).ok()) << name;
  }
}

TEST(ListCheckpoints, OrdersByStepThenGenerationAndPassesOverOthers) {
  TemporaryDirectory folder;
  Touch(folder / "step-00000020-a1-g1/manifest.json");
  Touch(folder / "step-00000010-a2-g3/manifest.json");
  Touch(folder / "step-00000010-a1-g1/model.safetensors");
  Touch(folder / "curves/a1-g1.jsonl");

  auto listed = ListCheckpoints(folder.path());

  ASSERT_TRUE(listed.ok());
  ASSERT_EQ(listed->size(), 3u);
  EXPECT_EQ((*listed)[0].path, folder / "step-00000010-a1-g1");
  EXPECT_FALSE((*listed)[0].has_manifest);
  EXPECT_EQ((*listed)[1].name, (CheckpointName{10, 2, 3}));
  EXPECT_TRUE((*listed)[2].has_manifest);
  EXPECT_TRUE(ListCheckpoints(folder / "absent")->empty());
}

TEST(RemoveCheckpoint, RemovesItsFilesAndIsContentIfItIsGone) {
  TemporaryDirectory folder;
  std::string path = folder / "step-00000010-a1-g1";
  Touch(path + "/manifest.json");
  Touch(path + "/manifest.json.tmp.123");
  Touch(path + "/model.safetensors");

  EXPECT_TRUE(RemoveCheckpoint(folder.path(), path + "/").ok());
  EXPECT_FALSE(fs::exists(path));
  EXPECT_TRUE(RemoveCheckpoint(folder.path(), path).ok());
}

TEST(RemoveCheckpoint, TouchesNothingOutsideTheCheckpointDirectory) {
  TemporaryDirectory folder;
  Touch(folder / "other/step-00000010-a1-g1/manifest.json");
  Touch(folder / "mine/precious/manifest.json");
  Touch(folder / "mine/sub/step-00000010-a1-g1/manifest.json");

  for (std::string path : {folder / "other/step-00000010-a1-g1", folder / "mine/precious", folder / "mine",
                           folder / "mine/sub/step-00000010-a1-g1", folder / "mine/../other/step-00000010-a1-g1"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(RemoveCheckpoint(folder / "mine", path))) << path;
  }
  EXPECT_TRUE(fs::exists(folder / "other/step-00000010-a1-g1/manifest.json"));
  EXPECT_TRUE(fs::exists(folder / "mine/sub/step-00000010-a1-g1/manifest.json"));
}

TEST(RemoveCheckpoint, DoesNotFollowALinkNorDeleteForeignFiles) {
  TemporaryDirectory folder;
  Touch(folder / "elsewhere/manifest.json");
  fs::create_directory_symlink(folder / "elsewhere", folder / "step-00000010-a1-g1");
  Touch(folder / "step-00000020-a1-g1/manifest.json");
  Touch(folder / "step-00000020-a1-g1/notes.txt");

  EXPECT_FALSE(RemoveCheckpoint(folder.path(), folder / "step-00000010-a1-g1").ok());
  absl::Status status = RemoveCheckpoint(folder.path(), folder / "step-00000020-a1-g1");

  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("notes.txt"));
  EXPECT_TRUE(fs::exists(folder / "elsewhere/manifest.json"));
  EXPECT_TRUE(fs::exists(folder / "step-00000020-a1-g1/manifest.json"));
}

}  // namespace
}  // namespace llmctl::checkpoint
