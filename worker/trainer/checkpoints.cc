#include "worker/trainer/checkpoints.h"

#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "common/base/failpoint.h"
#include "common/base/file.h"
#include "common/base/instant.h"
#include "common/base/status.h"
#include "worker/engine/checkpoint/checkpoint.h"
#include "worker/engine/checkpoint/directory.h"
#include "worker/trainer/failure.h"

namespace llmctl::trainer {
namespace {

constexpr char kModelFile[] = "model.safetensors";
constexpr char kOptimizerFile[] = "optimizer.safetensors";

// The three flat vectors, each with the prefix of its tensors' names.
struct FlatVector {
  std::string prefix;
  const char* file;
  float* data;
};

FlatVector Weights(TrainingState& state) { return {"", kModelFile, state.model().master()}; }

std::vector<FlatVector> AllVectors(TrainingState& state) {
  const engine::AdamW::Moments& moments = state.optimizer->moments();
  return {Weights(state),
          {"first_moment.", kOptimizerFile, moments.first},
          {"second_moment.", kOptimizerFile, moments.second}};
}

void AppendTargets(const FlatVector& vector, const engine::Model& model,
                   std::vector<checkpoint::SliceTarget>& targets) {
  for (const engine::Parameter& parameter : model.parameters()) {
    targets.push_back({.tensor = absl::StrCat(vector.prefix, parameter.name),
                       .box = checkpoint::WholeBox(parameter.shape),
                       .type = checkpoint::DataType::kF32,
                       .data = vector.data + parameter.offset});
  }
}

std::string ShapeText(const layout::ModelShape& s) {
  return absl::StrFormat("%s layers=%d hidden=%d heads=%d/%d ffn=%d vocabulary=%d tied=%d rope=%g eps=%g",
                         s.architecture, s.layers, s.hidden, s.heads, s.kv_heads, s.ffn, s.vocabulary,
                         s.tie_embeddings ? 1 : 0, s.rope_theta, s.norm_epsilon);
}

absl::Status CheckShape(const layout::ModelShape& expected, const layout::ModelShape& found) {
  if (ShapeText(expected) == ShapeText(found)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("holds another model: expected ", ShapeText(expected), ", found ", ShapeText(found)));
}

// Whether it is the checkpoint that is at fault: damaged, gone, or another's. Anything else (a file system that fails,
// rights or memory that are short) may be otherwise at the next try, and going on from an older one would throw work
// away.
bool IsNoGood(const absl::Status& loaded) {
  return absl::IsDataLoss(loaded) || absl::IsInvalidArgument(loaded) || absl::IsNotFound(loaded);
}

absl::Status CannotBeReadNow(const absl::Status& loaded, const contract::ResumePoint& point) {
  return WithExitCode(
      Annotate(loaded, "the checkpoint of step ", point.step, " cannot be read now, and may be whole"),
      contract::kExitInfrastructure);
}

}  // namespace

CheckpointKeeper::CheckpointKeeper(const contract::TrainerConfig& config, const RunIdentity& identity,
                                   int vocabulary_size, Control& control, const Log& log)
    : config_(config),
      identity_(identity),
      shape_(ShapeOf(config.model, vocabulary_size)),
      control_(control),
      log_(log) {}

checkpoint::Manifest CheckpointKeeper::MakeManifest(const TrainingState& state) const {
  checkpoint::Manifest manifest;
  manifest.job = config_.job;
  manifest.step = state.step;
  manifest.attempt = identity_.generation.attempt;
  manifest.generation = identity_.generation.generation;
  manifest.spec_digest = config_.spec_digest;
  manifest.model = shape_;
  manifest.dataset_digest = identity_.dataset_digest;
  manifest.sampler_digest = identity_.sampler_digest;
  manifest.ledger = state.ledger;
  manifest.consumed_samples = state.ledger.next_sample();
  manifest.consumed_tokens = state.consumed_tokens;
  manifest.optimizer = {.type = "adamw", .step = state.optimizer->updates()};
  manifest.seed = config_.training.seed;
  manifest.numerics = identity_.numerics;
  return manifest;
}

absl::Status CheckpointKeeper::Save(TrainingState& state) {
  absl::Duration begun = Now().monotonic;
  std::map<std::string, std::vector<checkpoint::Slice>> files;
  for (const FlatVector& vector : AllVectors(state)) {
    std::vector<checkpoint::SliceTarget> slices;
    AppendTargets(vector, state.model(), slices);
    for (checkpoint::SliceTarget& slice : slices) {
      files[vector.file].push_back({std::move(slice.tensor), std::move(slice.box), slice.type, slice.data});
    }
  }
  absl::StatusOr<checkpoint::Saved> saved =
      checkpoint::Save(config_.checkpoint.directory, MakeManifest(state), files);
  if (!saved.ok()) {
    absl::Status status = Annotate(saved.status(), "SAVE FAILED at step ", state.step, " in ",
                                   config_.checkpoint.directory, " (the run goes on; the next save tries again)");
    log_.alarm(status.message());
    return status;
  }
  last_saved_step_ = state.step;
  log_.line(absl::StrFormat("saved step %d in %s (%.1f MB, %.2f s)", state.step, saved->path,
                       static_cast<double>(saved->bytes) / 1e6, absl::ToDoubleSeconds(Now().monotonic - begun)));
  Offer(saved->path, saved->manifest_digest, state);
  return absl::OkStatus();
}

void CheckpointKeeper::Offer(const std::string& path, const std::string& manifest_digest, const TrainingState& state) {
  contract::CheckpointCommit commit = {.request_id = ++last_request_,
                                       .step = state.step,
                                       .path = path,
                                       .manifest_digest = manifest_digest,
                                       .next_sample = state.ledger.next_sample()};
  pending_[commit.request_id] = commit.path;
  HitFailpoint("checkpoint.before_commit");
  control_.Commit(commit);
}

void CheckpointKeeper::HandleReply(const contract::CheckpointCommitReply& reply) {
  auto it = pending_.find(reply.request_id);
  if (it == pending_.end()) return;
  refusal_ = reply.committed ? "" : absl::StrCat("commit of ", it->second, " refused: ", reply.error);
  if (reply.committed) {
    log_.line(absl::StrCat("committed ", it->second));
  } else {
    log_.alarm(refusal_);
  }
  pending_.erase(it);
  for (const std::string& path : reply.removable_paths) Remove(path);
}

void CheckpointKeeper::Remove(const std::string& path) const {
  absl::Status removed = checkpoint::RemoveCheckpoint(config_.checkpoint.directory, path);
  log_.line(removed.ok() ? absl::StrCat("removed ", path) : absl::StrCat("not removed: ", removed.message()));
}

void CheckpointKeeper::RemoveLeftovers() const {
  // Commits only go forward, so nothing before the oldest one can still become one.
  std::filesystem::path oldest = config_.resume_from.back().path;
  absl::StatusOr<checkpoint::CheckpointName> name = checkpoint::ParseCheckpointName(oldest.filename().string());
  absl::StatusOr<std::vector<checkpoint::ListedCheckpoint>> listed =
      checkpoint::ListCheckpoints(config_.checkpoint.directory);
  if (!name.ok() || !listed.ok()) return;
  for (const checkpoint::ListedCheckpoint& found : *listed) {
    bool older = std::pair(found.name.step, found.name.generation) < std::pair(name->step, name->generation);
    // Its writer is dead, or stale: then it is refused whatever it makes of it.
    bool torn = !found.has_manifest && found.name.generation < identity_.generation.generation;
    if (older || torn) Remove(found.path);
  }
}

absl::Status CheckpointKeeper::CheckManifest(const checkpoint::Manifest& manifest,
                                             const contract::ResumePoint& point) const {
  LLM_RETURN_IF_ERROR(CheckShape(shape_, manifest.model));
  if (manifest.step != point.step) {
    return absl::InvalidArgumentError(absl::StrCat("is of step ", manifest.step, ", expected ", point.step));
  }
  if (manifest.spec_digest != config_.spec_digest) {
    return absl::InvalidArgumentError("belongs to another job specification");
  }
  if (manifest.dataset_digest != identity_.dataset_digest || manifest.sampler_digest != identity_.sampler_digest) {
    return absl::InvalidArgumentError(absl::StrCat("was trained on another dataset than ", config_.data.dataset,
                                                   " holds now, or in another order"));
  }
  int64_t expected_samples = manifest.step * config_.training.global_batch_size;
  if (manifest.consumed_samples != expected_samples) {
    return absl::DataLossError(absl::StrCat("has consumed ", manifest.consumed_samples, " samples, expected ",
                                            expected_samples, " after step ", manifest.step));
  }
  return absl::OkStatus();
}

void CheckpointKeeper::NoteDifferentNumerics(const checkpoint::Manifest& manifest) const {
  for (const auto& [name, value] : identity_.numerics) {
    auto it = manifest.numerics.find(name);
    std::string before = it == manifest.numerics.end() ? "unknown" : it->second;
    if (before != value) {
      log_.line(absl::StrCat("note: ", name, " was ", before, " and is ", value,
                             ": losses may differ in the last bits"));
    }
  }
}

absl::Status CheckpointKeeper::LoadState(const contract::ResumePoint& point, TrainingState& state) {
  LLM_ASSIGN_OR_RETURN(std::unique_ptr<checkpoint::CheckpointReader> reader,
                       checkpoint::CheckpointReader::Open(point.path, point.manifest_digest));
  LLM_RETURN_IF_ERROR(CheckManifest(reader->manifest(), point));
  std::vector<checkpoint::SliceTarget> targets;
  for (const FlatVector& vector : AllVectors(state)) AppendTargets(vector, state.model(), targets);
  LLM_RETURN_IF_ERROR(reader->Load(targets));
  const checkpoint::Manifest& manifest = reader->manifest();
  state.step = manifest.step;
  state.consumed_tokens = manifest.consumed_tokens;
  state.ledger = manifest.ledger;
  state.optimizer->set_updates(manifest.optimizer.step);
  last_saved_step_ = manifest.step;
  NoteDifferentNumerics(manifest);
  return absl::OkStatus();
}

absl::Status CheckpointKeeper::CheckDirectory() const {
  const std::string& directory = config_.checkpoint.directory;
  struct stat info;
  if (::stat(directory.c_str(), &info) == 0) return absl::OkStatus();
  return ErrnoStatus(errno, absl::StrCat("look for the job's checkpoints in ", directory,
                                         " (is its file system mounted on this host?)"));
}

absl::StatusOr<std::vector<contract::ResumePoint>> CheckpointKeeper::FindUnrecorded() const {
  std::vector<contract::ResumePoint> found;
  LLM_ASSIGN_OR_RETURN(std::vector<checkpoint::ListedCheckpoint> listed,
                       checkpoint::ListCheckpoints(config_.checkpoint.directory));
  int64_t newest = config_.resume_from.empty() ? 0 : config_.resume_from.front().step;
  for (auto it = listed.rbegin(); it != listed.rend() && it->name.step > newest; ++it) {
    if (!it->has_manifest) continue;
    LLM_ASSIGN_OR_RETURN(std::string manifest, ReadFile(absl::StrCat(it->path, "/", checkpoint::kManifestName)));
    found.push_back({.step = it->name.step,
                     .path = it->path,
                     .manifest_digest = checkpoint::ManifestDigest(manifest)});
  }
  return found;
}

absl::StatusOr<bool> CheckpointKeeper::ResumeUnrecorded(TrainingState& state) {
  absl::StatusOr<std::vector<contract::ResumePoint>> found = FindUnrecorded();
  if (!found.ok()) {
    return WithExitCode(Annotate(found.status(), "look for checkpoints that the coordinator does not know"),
                        contract::kExitInfrastructure);
  }
  for (const contract::ResumePoint& point : *found) {
    absl::Status loaded = LoadState(point, state);
    if (loaded.ok()) {
      log_.line(absl::StrCat("resumed from step ", point.step, " in ", point.path,
                             ", which the coordinator's restored store does not know"));
      Offer(point.path, point.manifest_digest, state);
      return true;
    }
    if (!IsNoGood(loaded)) return CannotBeReadNow(loaded, point);
    log_.alarm(absl::StrCat("CHECKPOINT PASSED OVER: step ", point.step, " in ", point.path, ": ", loaded.message()));
  }
  if (found->empty() || !config_.resume_from.empty()) return false;
  return WithExitCode(
      absl::DataLossError(absl::StrCat("none of the ", found->size(), " checkpoints in ", config_.checkpoint.directory,
                                       " is usable, and the coordinator's restored store knows no other")),
      contract::kExitConfig);
}

absl::Status CheckpointKeeper::Resume(TrainingState& state) {
  // Without its directory every checkpoint is missing, and none is lost.
  LLM_RETURN_IF_ERROR(WithExitCode(CheckDirectory(), contract::kExitInfrastructure));
  for (const contract::ResumePoint& point : config_.resume_from) {
    absl::Status loaded = LoadState(point, state);
    if (loaded.ok()) {
      log_.line(absl::StrCat("resumed from step ", point.step, " in ", point.path));
      RemoveLeftovers();
      return absl::OkStatus();
    }
    if (!IsNoGood(loaded)) return CannotBeReadNow(loaded, point);
    log_.alarm(absl::StrCat("CHECKPOINT PASSED OVER: step ", point.step, " in ", point.path, ": ", loaded.message()));
  }
  return WithExitCode(
      absl::NotFoundError(absl::StrCat("none of the ", config_.resume_from.size(),
                                       " checkpoints to resume from is usable; restore one or submit the job anew")),
      contract::kExitConfig);
}

absl::Status CheckpointKeeper::LoadWeights(const std::string& path, TrainingState& state) {
  absl::Status loaded = Annotate(LoadModel(path, state), "initFrom ", path);
  // A path of the user's, and rights that the user has to give.
  bool users = IsNoGood(loaded) || absl::IsPermissionDenied(loaded);
  return WithExitCode(loaded, users ? contract::kExitConfig : contract::kExitInfrastructure);
}

absl::Status CheckpointKeeper::LoadModel(const std::string& path, TrainingState& state) const {
  LLM_ASSIGN_OR_RETURN(std::unique_ptr<checkpoint::CheckpointReader> reader, checkpoint::CheckpointReader::Open(path));
  LLM_RETURN_IF_ERROR(CheckShape(shape_, reader->manifest().model));
  std::vector<checkpoint::SliceTarget> targets;
  AppendTargets(Weights(state), state.model(), targets);
  return reader->Load(targets);
}

}  // namespace llmctl::trainer
