// The checkpoints of one run: what is in them, when they are committed, and how a run finds its way back.
//
// Layout: model.safetensors holds the fp32 master weights under their Hugging Face names, optimizer.safetensors the two
// moments as first_moment.<name> and second_moment.<name>.
//
// Rank 0 writes (data-parallel ranks hold the same state) and offers the result to Control; the run goes on
// meanwhile. A save that fails costs safety, not the run: it is said loudly, counted, and tried again at the
// next occasion. The answer to a commit names what may be removed. An answer may be lost with rank 0, and a save that
// was never committed is named by none: so a run that resumes removes what is older than all it was told to go on from,
// and what an earlier generation did not finish.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "common/base/ids.h"
#include "worker/contract/trainer_config.h"
#include "worker/engine/checkpoint/manifest.h"
#include "worker/trainer/control.h"
#include "worker/trainer/log.h"
#include "worker/trainer/state.h"

namespace llmctl::trainer {

// What a checkpoint says about its run besides the state.
struct RunIdentity {
  GenerationId generation;
  std::string dataset_digest;
  std::string sampler_digest;
  std::map<std::string, std::string> numerics;
};

class CheckpointKeeper {
 public:
  // All arguments outlive the keeper.
  CheckpointKeeper(const contract::TrainerConfig& config, const RunIdentity& identity, int vocabulary_size,
                   Control& control, const Log& log);

  // Writes the state and offers it for commit. A failure has been logged when it is returned.
  absl::Status Save(TrainingState& state);
  // Logs the outcome of a commit and removes what it says is not needed any more.
  void HandleReply(const contract::CheckpointCommitReply& reply);

  // -1: none, by this keeper.
  int64_t last_saved_step() const { return last_saved_step_; }
  bool commit_pending() const { return !pending_.empty(); }
  // Why the newest answered commit was refused; empty: it was not.
  const std::string& refusal() const { return refusal_; }

  // Loads the newest whole checkpoint of config.resume_from into `state`. Each one that was passed over, being damaged
  // or gone, has been logged; one that cannot be read for another reason is an error at once. Errors have their exit
  // code.
  absl::Status Resume(TrainingState& state);
  // The same with a checkpoint on disk that is newer than all of them, which it offers for commit: for a coordinator
  // that has forgotten some. False: there is none that is whole, and `state` may be spoilt; where nothing is on record
  // either, that there are damaged ones is an error.
  absl::StatusOr<bool> ResumeUnrecorded(TrainingState& state);
  // Only the weights. Errors have their exit code.
  absl::Status LoadWeights(const std::string& path, TrainingState& state);

 private:
  void Offer(const std::string& path, const std::string& manifest_digest, const TrainingState& state);
  // Newest first.
  absl::StatusOr<std::vector<contract::ResumePoint>> FindUnrecorded() const;
  checkpoint::Manifest MakeManifest(const TrainingState& state) const;
  absl::Status LoadState(const contract::ResumePoint& point, TrainingState& state);
  absl::Status LoadModel(const std::string& path, TrainingState& state) const;
  absl::Status CheckDirectory() const;
  void RemoveLeftovers() const;
  void Remove(const std::string& path) const;
  absl::Status CheckManifest(const checkpoint::Manifest& manifest, const contract::ResumePoint& point) const;
  void NoteDifferentNumerics(const checkpoint::Manifest& manifest) const;

  const contract::TrainerConfig& config_;
  const RunIdentity& identity_;
  const layout::ModelShape shape_;
  Control& control_;
  const Log& log_;

  int64_t last_saved_step_ = -1;
  int64_t last_request_ = 0;
  std::map<int64_t, std::string> pending_;  // request to path
  std::string refusal_;
};

}  // namespace llmctl::trainer
