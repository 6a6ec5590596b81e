#include "common/spec/validate.h"

#include <functional>
#include <string>

#include <gmock/gmock.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include "common/spec/digest.h"
#include "common/spec/read_job_spec.h"
#include "tests/unit/spec/valid_spec.h"

namespace llmctl::spec {
namespace {

v1::JobSpec ValidSpec() { return *ReadJobSpec(ValidYaml(), "job.yaml"); }

std::string FaultsAfter(const std::function<void(v1::JobSpec&)>& change, const ValidateOptions& options = {}) {
  v1::JobSpec spec = ValidSpec();
  change(spec);
  return std::string(ValidateJobSpec(spec, options).message());
}

TEST(ApplyDefaults, FillsInFieldsAndRules) {
  v1::JobSpec spec = ValidSpec();

  ApplyDefaults(spec);

  EXPECT_EQ(spec.metadata().project(), "default");
  EXPECT_EQ(spec.priority(), 50);
  EXPECT_EQ(spec.training().precision(), "bf16");
  EXPECT_EQ(spec.training().optimizer().learning_rate(), 3e-4);
  EXPECT_EQ(spec.training().seed(), 1u);
  EXPECT_EQ(spec.checkpoint().keep_last(), 2);
  EXPECT_EQ(spec.fault_tolerance().orphan_timeout(), "10m");
  EXPECT_EQ(spec.model().kv_heads(), 4);
  EXPECT_EQ(spec.model().ffn_size(), 704) << "8/3 of 256 is 682.7; the next multiple of 64 is 704";
  EXPECT_EQ(spec.training().schedule().warmup_steps(), 60);
  EXPECT_EQ(spec.resources().workers().max(), 1);
}

TEST(ApplyDefaults, KeepsZerosThatAreChoices) {
  v1::JobSpec spec = ValidSpec();
  spec.set_priority(0);
  spec.mutable_training()->mutable_optimizer()->set_weight_decay(0);
  spec.mutable_training()->mutable_schedule()->set_warmup_steps(0);
  spec.mutable_checkpoint()->set_every_steps(0);

  ApplyDefaults(spec);

  EXPECT_EQ(spec.priority(), 0);
  EXPECT_EQ(spec.training().optimizer().weight_decay(), 0);
  EXPECT_EQ(spec.training().schedule().warmup_steps(), 0);
  EXPECT_EQ(spec.checkpoint().every_steps(), 0);
}

TEST(ApplyDefaults, ChangesNothingTheSecondTime) {
  v1::JobSpec once = ValidSpec();
  ApplyDefaults(once);
  v1::JobSpec twice = once;

  ApplyDefaults(twice);

  EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(once, twice));
}

TEST(ValidateJobSpec, AcceptsAValidOneWithAndWithoutDefaults) {
  v1::JobSpec spec = ValidSpec();
  EXPECT_EQ(ValidateJobSpec(spec), absl::OkStatus());

  ApplyDefaults(spec);

  EXPECT_EQ(ValidateJobSpec(spec), absl::OkStatus());
}

TEST(ResolveJobSpec, GivesWhatDefaultsMakeOfAValidOneAndTheFaultsOfAnother) {
  v1::JobSpec spec = ValidSpec();
  v1::JobSpec expected = spec;
  ApplyDefaults(expected);

  absl::StatusOr<v1::JobSpec> resolved = ResolveJobSpec(spec);

  ASSERT_TRUE(resolved.ok()) << resolved.status();
  EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(*resolved, expected));
  spec.mutable_model()->set_heads(7);
  EXPECT_EQ(ResolveJobSpec(spec).status(), ValidateJobSpec(spec));
  EXPECT_FALSE(ValidateJobSpec(spec).ok());
}

TEST(ValidateJobSpec, SaysOfAnEmptyOneWhatIsMissing) {
  EXPECT_EQ(ValidateJobSpec(v1::JobSpec()).message(),
            "apiVersion: missing, expected llmctl/v1\n"
            "kind: missing, expected TrainingJob\n"
            "metadata: missing, expected a section with name, project, labels\n"
            "model: missing, expected a section with architecture, layers, hiddenSize, heads, kvHeads, ffnSize, "
            "ropeTheta, normEpsilon, tieEmbeddings, initStd\n"
            "data: missing, expected a section with dataset, sequenceLength\n"
            "training: missing, expected a section with steps, globalBatchSize, microBatchSize, precision, optimizer, "
            "schedule, gradientClipNorm, seed, validation\n"
            "checkpoint: missing, expected a section with directory, everySteps, keepLast");
}

TEST(ValidateJobSpec, WantsHeadsToFit) {
  EXPECT_EQ(FaultsAfter([](auto& s) { s.mutable_model()->set_heads(3); }),
            "model.heads: found 3, expected a divisor of model.hiddenSize (256)");
  EXPECT_EQ(FaultsAfter([](auto& s) { s.mutable_model()->set_heads(256); }),
            "model.heads: found 256, expected an even head size: model.hiddenSize / model.heads is 1");
  EXPECT_EQ(FaultsAfter([](auto& s) { s.mutable_model()->set_kv_heads(3); }),
            "model.kvHeads: found 3, expected a divisor of model.heads (4)");
}

TEST(ValidateJobSpec, WantsTheBatchToFit) {
  EXPECT_EQ(FaultsAfter([](auto& s) { s.mutable_training()->set_micro_batch_size(32); }),
            "training.microBatchSize: found 32, expected at most training.globalBatchSize (16)");
  EXPECT_EQ(FaultsAfter([](auto& s) { s.mutable_resources()->mutable_workers()->set_min(3); }),
            "training.globalBatchSize: found 16, expected a multiple of the 3 data-parallel ranks");
}

TEST(ValidateJobSpec, WantsRanksThatTheWorkersCanGive) {
  EXPECT_EQ(FaultsAfter([](auto& s) { s.mutable_parallelism()->set_data(2); }),
            "parallelism.data: found 2, expected resources.workers x resources.devicesPerWorker, 1");
  EXPECT_EQ(FaultsAfter([](auto& s) {
              s.mutable_parallelism()->set_data(3);
              s.mutable_resources()->set_devices_per_worker(2);
              s.mutable_resources()->mutable_workers()->set_max(4);
            }),
            "parallelism.data: found 3, expected resources.workers x resources.devicesPerWorker, a multiple of 2 from "
            "2 to 8");
}

TEST(ValidateJobSpec, WantsAtLeastAsManyWorkersAtMostAsAtLeast) {
  EXPECT_EQ(FaultsAfter([](auto& s) {
              s.mutable_resources()->mutable_workers()->set_min(4);
              s.mutable_resources()->mutable_workers()->set_max(2);
            }),
            "resources.workers.max: found 2, expected at least resources.workers.min (4)");
}

TEST(ValidateJobSpec, WantsWarmUpToEndBeforeTheJob) {
  EXPECT_EQ(FaultsAfter([](auto& s) { s.mutable_training()->mutable_schedule()->set_warmup_steps(601); }),
            "training.schedule.warmupSteps: found 601, expected at most training.steps (600)");
}

TEST(ValidateJobSpec, GuardsTheEnvironment) {
  EXPECT_EQ(FaultsAfter([](auto& s) { (*s.mutable_env())["LLMCTL_SHIM_FD"] = "3"; }),
            "env.LLMCTL_SHIM_FD: found a name that begins with LLMCTL_, expected another: those are set by the system");
  EXPECT_EQ(FaultsAfter([](auto& s) { (*s.mutable_env())["1A"] = "x"; }),
            "env.1A: found a bad name, expected letters, digits and '_', not beginning with a digit");
  EXPECT_THAT(FaultsAfter([](auto& s) { (*s.mutable_env())["A"] = std::string("x\0y", 3); }),
              testing::StartsWith("env.A: found a value of 3 bytes or with a zero byte"));
}

TEST(ValidateJobSpec, WantsAbsolutePathsOnlyWhereAskedTo) {
  EXPECT_EQ(FaultsAfter([](auto&) {}), "");
  EXPECT_EQ(FaultsAfter([](auto& s) { s.set_init_from("x"); }, {.absolute_paths = true}),
            "data.dataset: found \"data\", expected an absolute path (llmctl makes them so)\n"
            "checkpoint.directory: found \"checkpoints\", expected an absolute path (llmctl makes them so)\n"
            "initFrom: found \"x\", expected an absolute path (llmctl makes them so)");
}

TEST(SpecDigest, IsTheSameHoweverTheFileWasWritten) {
  std::string flow = Damaged("metadata:\n  name: tiny", "# a comment\nmetadata: {name: 'tiny', project: default}");

  EXPECT_EQ(SpecDigest(ValidSpec()), SpecDigest(*ReadJobSpec(flow, "job.yaml")));
  EXPECT_EQ(SpecDigest(ValidSpec()).size(), 64u);
}

TEST(SpecDigest, DiffersWithAnyValue) {
  v1::JobSpec changed = ValidSpec();
  changed.mutable_training()->set_seed(2);

  EXPECT_NE(SpecDigest(ValidSpec()), SpecDigest(changed));
}

}  // namespace
}  // namespace llmctl::spec
