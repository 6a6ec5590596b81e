#include "worker/engine/checkpoint/manifest.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/unit/checkpoint/sample_manifest.h"

namespace llmctl::checkpoint {
namespace {

using ::testing::HasSubstr;

Manifest WithOneTensor() {
  Manifest manifest = SampleManifest();
  manifest.files["model.safetensors"] = {100, "abc"};
  manifest.tensors["w@0:2"] = {"model.safetensors", DataType::kBF16, "def"};
  return manifest;
}

// The refusal of a sound manifest after `change`.
template <typename Change>
std::string RefusalAfter(Change change) {
  nlohmann::json json = nlohmann::json::parse(EncodeManifest(WithOneTensor()));
  change(json);
  return std::string(DecodeManifest(json.dump()).status().message());
}

TEST(CheckpointManifest, EveryFieldRoundTrips) {
  std::string text = EncodeManifest(WithOneTensor());

  absl::StatusOr<Manifest> decoded = DecodeManifest(text);

  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(EncodeManifest(*decoded), text);
  EXPECT_EQ(decoded->job, "j-1");
  EXPECT_EQ(decoded->seed, ~uint64_t{0});
  EXPECT_EQ(decoded->ledger, WithOneTensor().ledger);
  EXPECT_EQ(decoded->model.ffn, 704);
  EXPECT_EQ(decoded->optimizer.step, 19);
  EXPECT_EQ(decoded->numerics.at("torch"), "2.11.0");
  EXPECT_EQ(decoded->files.at("model.safetensors").bytes, 100);
  EXPECT_EQ(decoded->tensors.at("w@0:2").type, DataType::kBF16);
}

TEST(CheckpointManifest, EveryFieldIsRequired) {
  nlohmann::json whole = nlohmann::json::parse(EncodeManifest(WithOneTensor()));
  for (const auto& [name, value] : whole.items()) {
    std::string refusal = RefusalAfter([&, name = name](nlohmann::json& json) { json.erase(name); });
    EXPECT_THAT(refusal, HasSubstr("manifest.json." + name)) << name;
  }
}

TEST(CheckpointManifest, RefusesWhatContradictsItself) {
  EXPECT_THAT(RefusalAfter([](auto& json) { json["consumed_samples"] = 161; }),
              HasSubstr("the ledger ends before sample 160"));
  EXPECT_THAT(RefusalAfter([](auto& json) { json["ledger"][1]["first_sample"] = 81; }), HasSubstr("expected 80"));
  EXPECT_THAT(RefusalAfter([](auto& json) { json["tensors"]["w@0:2"]["file"] = "other.safetensors"; }),
              HasSubstr("is not in \"files\""));
}

TEST(CheckpointManifest, RefusesNamesThatLeadOutOfItsDirectory) {
  for (const char* name : {"../x.safetensors", "/etc/x.safetensors", ".safetensors", ".x.safetensors", "x.bin", ""}) {
    EXPECT_THAT(RefusalAfter([&](auto& json) {
                  json["files"][name] = {{"bytes", 1}, {"checksum", ""}};
                }),
                HasSubstr("is no name of a tensor file"))
        << name;
  }
}

TEST(CheckpointManifest, RefusesAnotherVersionAndUnknownFields) {
  EXPECT_THAT(RefusalAfter([](auto& json) { json["version"] = 2; }), HasSubstr("manifest.json.version"));
  EXPECT_THAT(RefusalAfter([](auto& json) { json["surprise"] = 2; }), HasSubstr("unknown field \"surprise\""));
  EXPECT_THAT(RefusalAfter([](auto& json) { json["tensors"]["w"] = json["tensors"]["w@0:2"]; }),
              HasSubstr("slice name"));
}

}  // namespace
}  // namespace llmctl::checkpoint
