#include "worker/contract/trainer_config.h"

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include "absl/strings/str_replace.h"

namespace llmctl::contract {
namespace {

using testing::HasSubstr;

// Each field away from its default.
TrainerConfig FullConfig() {
  TrainerConfig config;
  config.job = "j-1";
  config.job_name = "tiny";
  config.spec_digest = "abc";
  config.model = {.architecture = "llama", .layers = 2, .hidden_size = 64, .heads = 4, .kv_heads = 2, .ffn_size = 192,
                  .rope_theta = 10000, .norm_epsilon = 1e-5, .tie_embeddings = true, .init_std = 0.02};
  config.data = {.dataset = "/data/x", .sequence_length = 128};
  config.training.steps = 1000;
  config.training.global_batch_size = 16;
  config.training.micro_batch_size = 4;
  config.training.precision = "bf16";
  config.training.optimizer = {.type = "adamw", .learning_rate = 3e-4, .beta1 = 0.9, .beta2 = 0.95, .epsilon = 1e-8,
                               .weight_decay = 0.1};
  config.training.schedule = {.type = "cosine", .warmup_steps = 100, .min_learning_rate_factor = 0.1};
  config.training.gradient_clip_norm = 1;
  config.training.seed = std::numeric_limits<uint64_t>::max();
  config.training.validation_every_steps = 100;
  config.training.validation_samples = 64;
  config.training.nan_budget = 3;
  config.data_parallel = 2;
  config.checkpoint = {.directory = "/ckpt", .every_steps = 50, .keep_last = 2};
  config.init_from = "/init";
  config.orphan_timeout_seconds = 600;
  config.resume_from = {{.step = 50, .path = "/ckpt/a", .manifest_digest = "d"}};
  return config;
}

TEST(TrainerConfig, ComesBackTheSame) {
  std::string json = EncodeTrainerConfig(FullConfig());

  absl::StatusOr<TrainerConfig> decoded = DecodeTrainerConfig(json);

  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(decoded->training.seed, std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(decoded->training.optimizer.learning_rate, 3e-4);
  EXPECT_EQ(decoded->resume_from.at(0).path, "/ckpt/a");
  // The text has every field, so equal texts are equal configurations.
  EXPECT_EQ(EncodeTrainerConfig(*decoded), json);
}

TEST(TrainerConfig, FaultsAreNamed) {
  const std::string json = EncodeTrainerConfig(FullConfig());
  struct Case {
    std::string from, to, fault;
  };
  const std::vector<Case> cases = {
      {"\"beta1\": 0.9,", "", "trainer configuration: training.optimizer.beta1: missing"},
      {"\"beta1\": 0.9,", "\"beta1\": \"0.9\",", "training.optimizer.beta1: expected a number, found \"0.9\""},
      {"\"layers\": 2,", "\"layers\": 2, \"depth\": 3,", "model.depth: unknown field"},
      {"\"layers\": 2,", "\"layers\": 3000000000,", "model.layers: expected a whole number from"},
      {"\"seed\": 18446744073709551615", "\"seed\": -1", "training.seed: expected a whole number from 0"},
      {"\"step\": 50,", "\"step\": true,", "resume_from[0].step: expected a whole number, found true"},
      {"\"job\": \"j-1\",", "\"job\": \"j-1\"", "trainer configuration is not JSON"},
  };
  for (const Case& c : cases) {
    std::string broken = absl::StrReplaceAll(json, {{c.from, c.to}});
    ASSERT_NE(broken, json) << c.from;

    absl::StatusOr<TrainerConfig> decoded = DecodeTrainerConfig(broken);

    ASSERT_EQ(decoded.status().code(), absl::StatusCode::kInvalidArgument) << c.to;
    EXPECT_THAT(std::string(decoded.status().message()), HasSubstr(c.fault));
  }
}

}  // namespace
}  // namespace llmctl::contract
