// A training run small enough for a test: its dataset, its configuration, its ranks as threads.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

#include "common/base/file.h"
#include "common/base/rng.h"
#include "tests/unit/temporary_directory.h"
#include "worker/data/shards/dataset.h"
#include "worker/engine/checkpoint/directory.h"
#include "worker/engine/comm/in_process.h"
#include "worker/trainer/run.h"

namespace llmctl::trainer {

// A new folder for one test; gone when the program ends.
inline std::string FreshDirectory(const std::string& name) {
  static const TemporaryDirectory all;
  static int count = 0;
  std::string path = all / absl::StrCat(name, "-", ++count);
  EXPECT_TRUE(MakeDirectories(path).ok());
  return path;
}

inline data::SplitInfo WriteSplit(const std::string& directory, const std::string& split, int documents) {
  auto writer = data::ShardWriter::Create(directory, split, 260);
  EXPECT_TRUE(writer.ok()) << writer.status();
  SeededRng rng(documents);
  for (int d = 0; d < documents; ++d) {
    std::vector<int32_t> tokens;
    while (tokens.size() < 120) {
      uint64_t word = rng.Below(16);
      for (uint64_t i = 0; i < 3 + word % 4; ++i) tokens.push_back(static_cast<int32_t>(97 + (word * 5 + i * 3) % 26));
      tokens.push_back(' ');
    }
    tokens.push_back(256);
    EXPECT_TRUE((*writer)->AddDocument(tokens).ok());
  }
  auto info = (*writer)->Finish();
  EXPECT_TRUE(info.ok()) << info.status();
  return *info;
}

// Words from a list of sixteen, so that there is something to learn. Made once per process.
inline const std::string& TinyDataset() {
  static const std::string directory = [] {
    std::string path = FreshDirectory("dataset");
    data::DatasetManifest manifest = {.tokenizer = "byte", .vocabulary_size = 260, .end_of_document = 256};
    manifest.unigram_entropy = 2.5;
    manifest.splits = {WriteSplit(path, "train", 60), WriteSplit(path, "validation", 6)};
    manifest.source_json = "{}";
    EXPECT_TRUE(data::WriteManifest(path, manifest).ok());
    return path;
  }();
  return directory;
}

inline contract::TrainerConfig TinyConfig() {
  contract::TrainerConfig config;
  config.job = "j-1";
  config.job_name = "tiny";
  config.spec_digest = "spec";
  config.model = {.architecture = "llama", .layers = 2, .hidden_size = 32, .heads = 4, .kv_heads = 2, .ffn_size = 64,
                  .rope_theta = 10000, .norm_epsilon = 1e-5, .init_std = 0.02};
  config.data = {.dataset = TinyDataset(), .sequence_length = 32};
  config.training.steps = 8;
  config.training.global_batch_size = 6;
  config.training.micro_batch_size = 2;
  config.training.precision = "fp32";
  config.training.optimizer = {.type = "adamw", .learning_rate = 1e-2, .beta1 = 0.9, .beta2 = 0.95, .epsilon = 1e-8,
                               .weight_decay = 0.1};
  config.training.schedule = {.type = "cosine", .warmup_steps = 2, .min_learning_rate_factor = 0.1};
  config.training.gradient_clip_norm = 1;
  config.training.seed = 5;
  config.checkpoint = {.directory = FreshDirectory("checkpoints"), .every_steps = 0, .keep_last = 100};
  config.data_parallel = 1;
  return config;
}

// Commits everything at once, remembers what it was told, and asks for what a test wants.
class TestControl : public Control {
 public:
  // What to ask for when this many steps are done.
  using Script = std::map<int64_t, Requests>;

  explicit TestControl(Script script) : script_(std::move(script)) {}

  void Ready(int64_t step) override { ready_at = step; }
  void Report(const contract::Progress& progress) override {
    reports.push_back(progress);
    auto it = script_.find(progress.step);
    if (it != script_.end()) pending_ = it->second;
  }
  void Commit(const contract::CheckpointCommit& commit) override {
    commits.push_back(commit);
    pending_.commit_replies.push_back({.request_id = commit.request_id, .committed = true});
  }
  Requests Take() override { return std::exchange(pending_, Requests()); }
  void Wait(absl::Duration) override {}

  int64_t ready_at = -1;
  std::vector<contract::Progress> reports;
  std::vector<contract::CheckpointCommit> commits;

 private:
  Script script_;
  Requests pending_;
};

struct RankResult {
  absl::StatusOr<contract::ExitCode> exit = absl::UnknownError("did not run");
  std::vector<double> losses;  // by step
  std::vector<contract::Progress> reports;
  std::vector<contract::CheckpointCommit> commits;
  contract::PhaseRecord phases;  // at the end
  std::string log;
};

struct RunOptions {
  int64_t generation = 1;
  std::map<int, TestControl::Script> scripts;  // by rank
  std::string switched_off;                    // a site
  ModelFactory create_model = CreateOwnedModel;
};

inline RankResult RunRank(const contract::TrainerConfig& config, std::unique_ptr<engine::comm::Backend> backend,
                          const RunOptions& options) {
  RankResult result;
  int rank = backend->rank();
  std::map<engine::comm::Axis, std::unique_ptr<engine::comm::Backend>> axes;
  axes[engine::comm::Axis::kData] = std::move(backend);
  contract::PhasePage phases;
  engine::comm::Communicator communicator(std::move(axes), nullptr, &phases);
  communicator.SwitchOffForTest(options.switched_off);
  auto script = options.scripts.find(rank);
  TestControl control(script == options.scripts.end() ? TestControl::Script() : script->second);
  auto log = [&](absl::string_view line) { absl::StrAppend(&result.log, line, "\n"); };
  result.exit = RunTraining({.config = config,
                             .generation = {JobId(config.job), 1, options.generation},
                             .communicator = communicator,
                             .phases = phases,
                             .control = control,
                             .log = {.line = log, .alarm = log},
                             .create_model = options.create_model,
                             .numerics = {{"precision", config.training.precision}}});
  int64_t last = 0;
  for (const contract::Progress& report : control.reports) {
    if (report.step != std::exchange(last, report.step)) result.losses.push_back(report.loss);
  }
  result.phases = phases.record();
  result.reports = control.reports;
  result.commits = control.commits;
  return result;
}

// config.data_parallel ranks, each on a thread; results by rank.
inline std::vector<RankResult> RunRanks(const contract::TrainerConfig& config, const RunOptions& options = {}) {
  std::vector<std::unique_ptr<engine::comm::Backend>> backends =
      engine::comm::CreateInProcessGroup(config.data_parallel);
  std::vector<RankResult> results(backends.size());
  std::vector<std::thread> threads;
  for (size_t rank = 0; rank < backends.size(); ++rank) {
    threads.emplace_back([&, rank] { results[rank] = RunRank(config, std::move(backends[rank]), options); });
  }
  for (std::thread& thread : threads) thread.join();
  return results;
}

// The committed checkpoints of a run as the coordinator would hand them to the next attempt: newest first.
inline std::vector<contract::ResumePoint> ResumePoints(const RankResult& rank0) {
  std::vector<contract::ResumePoint> points;
  for (const contract::CheckpointCommit& commit : rank0.commits) {
    points.insert(points.begin(),
                  {.step = commit.step, .path = commit.path, .manifest_digest = commit.manifest_digest});
  }
  return points;
}

}  // namespace llmctl::trainer
