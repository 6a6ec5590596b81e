// The specification's way to the trainer: every field mapped or known not to be its concern.
#include "worker/agent/rpc/job_config.h"

#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>
#include "absl/strings/str_cat.h"

#include "llmctl/v1/job.pb.h"
#include "llmctl/v1/worker_link.pb.h"

namespace llmctl::agent {
namespace {

using google::protobuf::FieldDescriptor;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

v1::StartRanks FullStart() {
  v1::StartRanks start;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(R"(
    generation { job: "j-1" attempt: 2 generation: 3 }
    world_size: 2
    ranks { rank: 1 device: 4 }
    rank_table { rank: 0 node: "a" fabric_address: "10.0.0.1" }
    rank_table { rank: 1 node: "b" fabric_address: "10.0.0.2" }
    checkpoints { step: 50 path: "/ckpt/50" manifest_digest: "d" }
    spec {
      api_version: "llmctl/v1" kind: "TrainingJob"
      metadata { name: "tiny" project: "p" labels { key: "k" value: "v" } }
      model { architecture: "llama" layers: 2 hidden_size: 64 heads: 4 kv_heads: 2 ffn_size: 192 rope_theta: 5000
              norm_epsilon: 1e-6 tie_embeddings: true init_std: 0.03 }
      data { dataset: "/data" sequence_length: 128 }
      training { steps: 1000 global_batch_size: 16 micro_batch_size: 4 precision: "fp32"
        optimizer { type: "adamw" learning_rate: 1e-3 beta1: 0.8 beta2: 0.99 epsilon: 1e-7 weight_decay: 0.2 }
        schedule { type: "constant" warmup_steps: 7 min_learning_rate_factor: 0.3 }
        gradient_clip_norm: 2 seed: 9 validation { every_steps: 20 samples: 8 } }
      parallelism { data: 2 }
      checkpoint { directory: "/ckpt" every_steps: 50 keep_last: 3 }
      resources { workers { min: 1 max: 2 } devices_per_worker: 1 }
      fault_tolerance { max_restarts: 1 orphan_timeout: "90s" max_attempts_without_progress: 4 nan_budget: 5 }
      env { key: "FLAVOUR" value: "vanilla" }
      init_from: "/init" time_limit: "1h" priority: 60
    })", &start));
  return start;
}

// Paths of all leaves of a message type.
void CollectLeaves(const google::protobuf::Descriptor& type, const std::string& prefix, std::set<std::string>& out) {
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    std::string path = absl::StrCat(prefix, field.name());
    if (field.message_type() != nullptr && !field.is_repeated()) {
      CollectLeaves(*field.message_type(), path + ".", out);
    } else {
      out.insert(path);
    }
  }
}

// Changes the leaf at `path` to another valid value.
void ChangeLeaf(google::protobuf::Message& message, const std::string& path) {
  size_t dot = path.find('.');
  const google::protobuf::Reflection& reflection = *message.GetReflection();
  const FieldDescriptor* field = message.GetDescriptor()->FindFieldByName(path.substr(0, dot));
  if (dot != std::string::npos) return ChangeLeaf(*reflection.MutableMessage(&message, field), path.substr(dot + 1));
  if (field->is_repeated()) return reflection.ClearField(&message, field);
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return reflection.SetInt32(&message, field, reflection.GetInt32(message, field) + 1);
    case FieldDescriptor::CPPTYPE_INT64:
      return reflection.SetInt64(&message, field, reflection.GetInt64(message, field) + 1);
    case FieldDescriptor::CPPTYPE_UINT64:
      return reflection.SetUInt64(&message, field, reflection.GetUInt64(message, field) + 1);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return reflection.SetDouble(&message, field, reflection.GetDouble(message, field) / 2);
    case FieldDescriptor::CPPTYPE_BOOL:
      return reflection.SetBool(&message, field, !reflection.GetBool(message, field));
    case FieldDescriptor::CPPTYPE_STRING:
      return reflection.SetString(&message, field, field->name() == "orphan_timeout" ? "91s" : "changed");
    default: FAIL() << path << ": a kind of field this test does not know";
  }
}

// All of the trainer's configuration but the digest, which every change of the specification changes.
std::string TrainerSees(const v1::StartRanks& start) {
  contract::TrainerConfig config = ToTrainerConfig(start).value();
  config.spec_digest.clear();
  return contract::EncodeTrainerConfig(config);
}

TEST(JobConfig, EveryFieldReachesTheTrainerOrIsKnownNotToConcernIt) {
  std::set<std::string> leaves;
  CollectLeaves(*v1::JobSpec::descriptor(), "", leaves);
  const std::string before = TrainerSees(FullStart());

  for (const std::string& path : leaves) {
    v1::StartRanks start = FullStart();
    ChangeLeaf(*start.mutable_spec(), path);
    bool seen = TrainerSees(start) != before;

    EXPECT_EQ(seen, !FieldsNotForTheTrainer().contains(path))
        << "JobSpec." << path << (seen ? " is listed as no concern of the trainer but reaches it"
                                       : " is neither mapped nor listed in FieldsNotForTheTrainer()");
  }
}

TEST(JobConfig, TheListNamesOnlyFieldsThatExist) {
  std::set<std::string> leaves;
  CollectLeaves(*v1::JobSpec::descriptor(), "", leaves);
  std::vector<std::string> unknown;

  for (const std::string& path : FieldsNotForTheTrainer()) {
    if (!leaves.contains(path)) unknown.push_back(path);
  }

  EXPECT_THAT(unknown, IsEmpty());
}

TEST(JobConfig, ValuesArriveInTheirPlaces) {
  contract::TrainerConfig config = ToTrainerConfig(FullStart()).value();

  EXPECT_EQ(config.job, "j-1");
  EXPECT_EQ(config.training.optimizer.beta2, 0.99);
  EXPECT_EQ(config.training.schedule.warmup_steps, 7);
  EXPECT_EQ(config.training.nan_budget, 5);
  EXPECT_EQ(config.orphan_timeout_seconds, 90);
  EXPECT_EQ(config.resume_from.at(0).path, "/ckpt/50");
}

TEST(JobConfig, DefaultsAreFilledIn) {
  v1::StartRanks start = FullStart();
  start.mutable_spec()->mutable_training()->clear_optimizer();
  start.mutable_spec()->mutable_model()->clear_kv_heads();
  start.mutable_spec()->clear_parallelism();
  start.mutable_spec()->clear_fault_tolerance();

  contract::TrainerConfig config = ToTrainerConfig(start).value();

  EXPECT_EQ(config.training.optimizer.type, "adamw");
  EXPECT_EQ(config.training.optimizer.learning_rate, 3e-4);
  EXPECT_EQ(config.model.kv_heads, 4);
  EXPECT_EQ(config.data_parallel, 2);
  EXPECT_EQ(config.orphan_timeout_seconds, 600);
}

TEST(JobConfig, TheOrderHasRanksPathsAndEnvironment) {
  StartOrdered order = ToStartOrder(FullStart());

  EXPECT_EQ(order.refusal, "");
  EXPECT_EQ(order.generation.generation, 3);
  EXPECT_EQ(order.ranks.at(0).device, 4);
  EXPECT_EQ(order.rank_table.at(1).fabric_address, "10.0.0.2");
  EXPECT_THAT(order.start.paths, ElementsAre("/data", "/ckpt", "/init"));
  EXPECT_EQ(order.start.env.at("FLAVOUR"), "vanilla");
  EXPECT_EQ(order.start.orphan_timeout, absl::Seconds(90));
  EXPECT_TRUE(contract::DecodeTrainerConfig(order.start.trainer_config).ok());
}

TEST(JobConfig, ASpecificationThatCannotBeReadIsRefused) {
  v1::StartRanks start = FullStart();
  start.mutable_spec()->mutable_fault_tolerance()->set_orphan_timeout("soon");

  StartOrdered order = ToStartOrder(start);

  EXPECT_THAT(order.refusal, HasSubstr("faultTolerance.orphanTimeout"));
  EXPECT_EQ(order.ranks.size(), 1u);
}

}  // namespace
}  // namespace llmctl::agent
