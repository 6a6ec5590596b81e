#include "worker/engine/checkpoint/checkpoint.h"

#include <filesystem>
#include <fstream>
#include <numeric>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/file.h"
#include "common/base/rng.h"
#include "tests/unit/checkpoint/sample_manifest.h"
#include "tests/unit/seen_syncs.h"
#include "tests/unit/temporary_directory.h"

namespace llmctl::checkpoint {
namespace {

namespace fs = std::filesystem;
using ::testing::Each;
using ::testing::HasSubstr;

// A saved state of two tensors, one of them in two slices, in two files.
class SavedState {
 public:
  SavedState() : weight(24), bias(6) {
    std::iota(weight.begin(), weight.end(), 0);
    std::iota(bias.begin(), bias.end(), 100);
    absl::StatusOr<Saved> result = Save();
    EXPECT_TRUE(result.ok()) << result.status();
    if (result.ok()) saved = *result;
  }

  absl::StatusOr<Saved> Save() {
    return checkpoint::Save(folder.path(), SampleManifest(),
                            {{"a.safetensors",
                              {{"weight", {{0, 2}, {0, 6}}, DataType::kF32, weight.data()},
                               {"bias", WholeBox({6}), DataType::kF32, bias.data()}}},
                             {"b.safetensors", {{"weight", {{2, 4}, {0, 6}}, DataType::kF32, weight.data() + 12}}}});
  }
  absl::StatusOr<std::unique_ptr<CheckpointReader>> Open() {
    return CheckpointReader::Open(saved.path, saved.manifest_digest);
  }
  std::string FilePath(const std::string& name) const { return saved.path + "/" + name; }

  TemporaryDirectory folder;
  std::vector<float> weight;
  std::vector<float> bias;
  Saved saved;
};

void Overwrite(const std::string& path, absl::string_view content) {
  std::ofstream(path, std::ios::binary) << std::string(content);
}

TEST(Checkpoint, LoadsWhatWasSaved) {
  SavedState state;
  auto reader = state.Open();
  ASSERT_TRUE(reader.ok()) << reader.status();

  std::vector<float> weight(24, -1), bias(6, -1);
  absl::Status loaded = (*reader)->Load({{"weight", WholeBox({4, 6}), DataType::kF32, weight.data()},
                                         {"bias", WholeBox({6}), DataType::kF32, bias.data()}});

  EXPECT_TRUE(loaded.ok()) << loaded;
  EXPECT_EQ(weight, state.weight);
  EXPECT_EQ(bias, state.bias);
  EXPECT_EQ((*reader)->manifest().step, 20);
  EXPECT_EQ(fs::path(state.saved.path).filename(), "step-00000020-a2-g3");
}

TEST(Checkpoint, TheFirstOfAJobSurvivesAPowerLossWithTheFoldersAboveIt) {
  TemporaryDirectory folder;
  std::string above = fs::canonical(folder.path());
  std::vector<float> data(6);
  SeenSyncs().clear();

  absl::StatusOr<Saved> saved =
      Save(above + "/jobs/j-1", SampleManifest(),
           {{"a.safetensors", {{"weight", WholeBox({6}), DataType::kF32, data.data()}}}});

  ASSERT_TRUE(saved.ok()) << saved.status();
  EXPECT_THAT(SeenSyncs(), ::testing::IsSupersetOf({above, above + "/jobs", above + "/jobs/j-1", saved->path}));
}

TEST(Checkpoint, LoadsABoxThatWasNotSavedAsOne) {
  SavedState state;
  auto reader = state.Open();
  ASSERT_TRUE(reader.ok());

  std::vector<float> columns(8, -1);
  absl::Status loaded = (*reader)->Load({{"weight", {{0, 4}, {3, 5}}, DataType::kF32, columns.data()}});

  EXPECT_TRUE(loaded.ok()) << loaded;
  EXPECT_THAT(columns, ::testing::ElementsAre(3, 4, 9, 10, 15, 16, 21, 22));
}

TEST(Checkpoint, AnyDamagedByteIsFoundBeforeAnythingIsLoaded) {
  SavedState state;
  SeededRng rng(1);
  for (const char* name : {"a.safetensors", "b.safetensors", "manifest.json"}) {
    std::string whole = *ReadFile(state.FilePath(name));
    for (int round = 0; round < 200; ++round) {
      std::string damaged = whole;
      size_t at = rng.Below(damaged.size());
      damaged[at] ^= 1 << rng.Below(8);
      Overwrite(state.FilePath(name), damaged);
      EXPECT_TRUE(absl::IsDataLoss(state.Open().status())) << name << " byte " << at;
    }
    Overwrite(state.FilePath(name), whole);
  }
  EXPECT_TRUE(state.Open().ok());
}

TEST(Checkpoint, ATruncatedFileIsFoundAtEveryLength) {
  SavedState state;
  std::string path = state.FilePath("b.safetensors");
  std::string whole = *ReadFile(path);
  for (size_t length = 0; length < whole.size(); ++length) {
    Overwrite(path, whole.substr(0, length));
    EXPECT_TRUE(absl::IsDataLoss(state.Open().status())) << length;
  }
  fs::remove(path);
  EXPECT_THAT(std::string(state.Open().status().message()), HasSubstr("file b.safetensors: is missing"));
}

TEST(Checkpoint, DamageIsReportedWithFileTensorExpectedAndFound) {
  SavedState state;
  std::string path = state.FilePath("a.safetensors");
  std::string damaged = *ReadFile(path);
  damaged.back() ^= 1;
  Overwrite(path, damaged);

  std::string message(state.Open().status().message());

  EXPECT_THAT(message, HasSubstr(state.saved.path));
  EXPECT_THAT(message, HasSubstr("file a.safetensors: tensor bias@0:6 has checksum"));
  EXPECT_THAT(message,
              HasSubstr("expected " +
                        (*DecodeManifest(*ReadFile(state.FilePath("manifest.json")))).tensors.at("bias@0:6").checksum));
}

TEST(Checkpoint, ANewManifestOverOldFilesIsRefusedByItsDigest) {
  SavedState state;

  absl::Status status = CheckpointReader::Open(state.saved.path, std::string(64, '0')).status();

  EXPECT_TRUE(absl::IsDataLoss(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr(state.saved.manifest_digest));
}

TEST(Checkpoint, WithoutAManifestThereIsNone) {
  SavedState state;
  fs::remove(state.FilePath("manifest.json"));

  EXPECT_TRUE(absl::IsNotFound(state.Open().status()));
}

TEST(Checkpoint, RefusesTargetsThatItCannotFillAndFillsNone) {
  SavedState state;
  auto reader = state.Open();
  ASSERT_TRUE(reader.ok());
  std::vector<float> bias(6, -1), out(100, -1);
  auto refusal = [&](SliceTarget target) {
    target.data = out.data();
    absl::Status status = (*reader)->Load({{"bias", WholeBox({6}), DataType::kF32, bias.data()}, target});
    EXPECT_TRUE(absl::IsDataLoss(status));
    return std::string(status.message());
  };

  EXPECT_THAT(refusal({"absent", WholeBox({6}), DataType::kF32}), HasSubstr("tensor absent is not in it"));
  EXPECT_THAT(refusal({"weight", WholeBox({5, 6}), DataType::kF32}), HasSubstr("only 24 of 30 elements"));
  EXPECT_THAT(refusal({"weight", WholeBox({24}), DataType::kF32}), HasSubstr("only 0 of 24 elements"));
  EXPECT_THAT(refusal({"weight", WholeBox({4, 6}), DataType::kF64}), HasSubstr("is stored as F32, expected F64"));
  EXPECT_THAT(bias, Each(-1));
  EXPECT_THAT(out, Each(-1));
}

TEST(Checkpoint, AFinishedOneIsNeverWrittenAgain) {
  SavedState state;
  std::string manifest = *ReadFile(state.FilePath("manifest.json"));

  EXPECT_TRUE(absl::IsAlreadyExists(state.Save().status()));
  EXPECT_EQ(*ReadFile(state.FilePath("manifest.json")), manifest);
}

TEST(Checkpoint, AnUnfinishedOneIsReplaced) {
  SavedState state;
  fs::remove(state.FilePath("manifest.json"));
  Overwrite(state.FilePath("a.safetensors"), "half");

  EXPECT_TRUE(state.Save().ok());
  EXPECT_TRUE(state.Open().ok());
}

TEST(Checkpoint, AFailedSaveNamesTheFileAndLeavesNoCheckpoint) {
  TemporaryDirectory folder;
  float x = 1;
  // A folder in the way of the second file: what cannot be created cannot be written.
  std::string path = folder / "step-00000020-a2-g3";
  fs::create_directories(path + "/b.safetensors/x");

  absl::Status status =
      Save(folder.path(), SampleManifest(), {{"b.safetensors", {{"x", {}, DataType::kF32, &x}}}}).status();

  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()), HasSubstr("b.safetensors"));
  EXPECT_TRUE(absl::IsNotFound(CheckpointReader::Open(path).status()));
}

}  // namespace
}  // namespace llmctl::checkpoint
