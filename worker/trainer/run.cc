#include "worker/trainer/run.h"

#include <array>
#include <memory>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"

#include "common/base/instant.h"
#include "common/base/status.h"
#include "worker/data/shards/dataset.h"
#include "worker/data/shards/loader.h"
#include "worker/data/shards/sampler.h"
#include "worker/data/shards/verify_once.h"
#include "worker/trainer/failure.h"
#include "worker/trainer/progress.h"
#include "worker/trainer/step.h"
#include "worker/trainer/validation.h"

namespace llmctl::trainer {
namespace {

using contract::Activity;
using contract::InPhase;
using contract::Phase;
using engine::comm::Axis;
using engine::comm::DataType;
using engine::comm::Op;

// What the ranks agreed on at a step boundary.
struct Agreement {
  int64_t tokens = 0;
  bool save = false;
  bool yield = false;
};

class Run {
 public:
  explicit Run(const RunSetup& setup) : setup_(setup), config_(setup.config) {}

  absl::Status Prepare();
  absl::StatusOr<contract::ExitCode> Steps();

 private:
  int rank() const { return setup_.communicator.rank(Axis::kData); }
  int world_size() const { return setup_.communicator.size(Axis::kData); }
  absl::Status Sum(const engine::comm::Site& site, double* values, int64_t count);
  absl::Status Broadcast(const engine::comm::Site& site, void* data, int64_t count, DataType type);

  absl::Status OpenData();
  absl::Status VerifyData();
  // What a run begins from.
  enum class Start { kFailed, kFresh, kWeightsOnly, kResumed };
  // On rank 0.
  absl::StatusOr<Start> FindStart();
  absl::Status Restore();
  absl::Status ReceiveState(bool weights_only);
  absl::Status CreateLoader();

  absl::StatusOr<data::StepBatch> NextBatch();
  // Commit replies are dealt with; a halt comes back as an error.
  absl::StatusOr<Requests> TakeRequests();
  absl::StatusOr<Agreement> Agree(int64_t tokens, const Requests& requests);
  absl::Status DoStep(const data::StepBatch& batch, int64_t tokens, absl::Duration begun);
  absl::Status CountSkip(const StepResult& result);
  absl::Status Validate();
  absl::Status SaveIfNew();
  // Where the time of the steps went besides arithmetic.
  void LogWaiting() const;
  absl::StatusOr<contract::ExitCode> End(contract::ExitCode code);
  absl::Status AwaitCommits();

  const RunSetup& setup_;
  const contract::TrainerConfig& config_;
  data::DatasetManifest dataset_;
  RunIdentity identity_;
  std::unique_ptr<data::ShardReader> reader_;
  data::SamplerSpec sampler_;
  std::unique_ptr<Validator> validator_;  // null: validation is off
  TrainingState state_;
  std::unique_ptr<CheckpointKeeper> keeper_;
  std::unique_ptr<ProgressReporter> reporter_;
  std::unique_ptr<StepRunner> stepper_;
  double data_wait_seconds_ = 0;
  double step_seconds_ = 0;
  std::unique_ptr<data::Loader> loader_;  // last: its thread reads from reader_
};

absl::Status Run::Sum(const engine::comm::Site& site, double* values, int64_t count) {
  return setup_.communicator.Collective(site, Axis::kData, Op::kAllReduceSum, {values, count, DataType::kFloat64});
}

absl::Status Run::Broadcast(const engine::comm::Site& site, void* data, int64_t count, DataType type) {
  return setup_.communicator.Collective(site, Axis::kData, Op::kBroadcast, {data, count, type});
}

absl::Status Run::Prepare() {
  if (config_.data_parallel != world_size()) {
    return absl::InvalidArgumentError(absl::StrCat("parallelism.data is ", config_.data_parallel, ", but this run has ",
                                                   world_size(), " ranks"));
  }
  LLM_RETURN_IF_ERROR(Annotate(OpenData(), "open dataset ", config_.data.dataset));
  LLM_ASSIGN_OR_RETURN(state_, CreateTrainingState(config_, dataset_.vocabulary_size, setup_.isa, setup_.create_model,
                                                   &setup_.phases));
  keeper_ = std::make_unique<CheckpointKeeper>(config_, identity_, dataset_.vocabulary_size, setup_.control,
                                               setup_.log);
  reporter_ = std::make_unique<ProgressReporter>(config_, setup_.generation, rank(), setup_.control, setup_.log);
  stepper_ = std::make_unique<StepRunner>(config_.training, state_, setup_.communicator, setup_.phases);
  LLM_RETURN_IF_ERROR(Restore());
  return CreateLoader();
}

absl::Status Run::OpenData() {
  const std::string& directory = config_.data.dataset;
  LLM_ASSIGN_OR_RETURN(dataset_, data::ReadManifest(directory));
  LLM_ASSIGN_OR_RETURN(identity_.dataset_digest, data::ManifestDigest(directory));
  LLM_RETURN_IF_ERROR(VerifyData());
  LLM_ASSIGN_OR_RETURN(reader_, data::ShardReader::Open(directory, "train"));
  LLM_ASSIGN_OR_RETURN(data::SplitInfo split, data::FindSplit(dataset_, directory, "train"));
  LLM_ASSIGN_OR_RETURN(sampler_, data::MakeSamplerSpec(dataset_, split, identity_.dataset_digest,
                                                       config_.data.sequence_length));
  sampler_.seed = config_.training.seed;
  identity_.generation = setup_.generation;
  identity_.sampler_digest = data::SamplerDigest(sampler_);
  identity_.numerics = setup_.numerics;
  if (config_.training.validation_every_steps > 0) {
    LLM_ASSIGN_OR_RETURN(validator_, Validator::Create(config_, dataset_, identity_.dataset_digest));
  }
  return absl::OkStatus();
}

// Every rank, as hosts may have disks of their own; those of one host take turns, and the first reads for all.
absl::Status Run::VerifyData() {
  InPhase reading(&setup_.phases, Phase::kReading);
  LLM_ASSIGN_OR_RETURN(data::Verification verified,
                       data::VerifyOnce(config_.data.dataset, dataset_, data::VerifyLimits()));
  if (verified.result == data::Verification::Result::kReadNow) {
    setup_.log.line(absl::StrFormat("dataset: %.3f GB read, checksums are right",
                                    static_cast<double>(verified.bytes) / 1e9));
  }
  if (!verified.note.empty()) setup_.log.line(absl::StrCat("dataset: ", verified.note));
  return absl::OkStatus();
}

// Rank 0 alone decides what to go on from: two ranks that see a shared disk differently must not differ in state.
absl::StatusOr<Run::Start> Run::FindStart() {
  if (config_.search_checkpoints.value_or(false)) {
    LLM_ASSIGN_OR_RETURN(bool resumed, keeper_->ResumeUnrecorded(state_));
    if (resumed) return Start::kResumed;
  }
  if (!config_.resume_from.empty()) {
    LLM_RETURN_IF_ERROR(keeper_->Resume(state_));
    return Start::kResumed;
  }
  if (config_.init_from.empty()) return Start::kFresh;
  LLM_RETURN_IF_ERROR(keeper_->LoadWeights(config_.init_from, state_));
  return Start::kWeightsOnly;
}

absl::Status Run::Restore() {
  bool may_be_fresh = config_.resume_from.empty() && config_.init_from.empty();
  if (may_be_fresh && !config_.search_checkpoints.value_or(false)) return absl::OkStatus();
  absl::StatusOr<Start> start = Start::kFresh;
  if (rank() == 0) {
    InPhase reading(&setup_.phases, Phase::kReading);
    start = FindStart();
  }
  std::array<int64_t, 4> facts = {static_cast<int64_t>(start.value_or(Start::kFailed)), state_.step,
                                  state_.optimizer->updates(), state_.consumed_tokens};
  LLM_RETURN_IF_ERROR(Broadcast("restore.facts", facts.data(), facts.size(), DataType::kInt64));
  if (rank() == 0) LLM_RETURN_IF_ERROR(start.status());
  const Start agreed = static_cast<Start>(facts[0]);
  if (agreed == Start::kFailed) {
    // Rank 0 says what is wrong, and its end ends this wait: nobody else is to be taken for the cause before that.
    absl::Status peer_gone = setup_.communicator.Collective("restore.refused", Axis::kData, Op::kBarrier, {});
    return Annotate(peer_gone.ok() ? absl::UnavailableError("it goes on all the same") : peer_gone,
                    "rank 0 found no checkpoint to start from");
  }
  if (agreed == Start::kFresh) return absl::OkStatus();
  state_.step = facts[1];
  state_.optimizer->set_updates(facts[2]);
  state_.consumed_tokens = facts[3];
  return ReceiveState(/*weights_only=*/agreed == Start::kWeightsOnly);
}

absl::Status Run::ReceiveState(bool weights_only) {
  int64_t count = state_.model().flat_size();
  LLM_RETURN_IF_ERROR(Broadcast("restore.weights", state_.model().master(), count, DataType::kFloat32));
  if (!weights_only) {
    const engine::AdamW::Moments& moments = state_.optimizer->moments();
    LLM_RETURN_IF_ERROR(Broadcast("restore.first_moment", moments.first, count, DataType::kFloat32));
    LLM_RETURN_IF_ERROR(Broadcast("restore.second_moment", moments.second, count, DataType::kFloat32));
  }
  state_.model().CastWeights();
  return absl::OkStatus();
}

absl::Status Run::CreateLoader() {
  data::LoaderOptions options = {.sampler = sampler_,
                                 .first_sample = state_.step * config_.training.global_batch_size,
                                 .global_batch_size = config_.training.global_batch_size,
                                 .rank = rank(),
                                 .world_size = world_size(),
                                 .batch = data::BatchOptionsOf(dataset_, config_.training.micro_batch_size)};
  LLM_ASSIGN_OR_RETURN(loader_, data::Loader::Create(*reader_, options));
  return absl::OkStatus();
}

absl::StatusOr<Requests> Run::TakeRequests() {
  Requests requests = setup_.control.Take();
  for (const contract::CheckpointCommitReply& reply : requests.commit_replies) keeper_->HandleReply(reply);
  if (requests.halt.has_value()) {
    return WithExitCode(absl::UnavailableError(requests.halt->reason), requests.halt->exit_code);
  }
  return requests;
}

absl::StatusOr<Agreement> Run::Agree(int64_t tokens, const Requests& requests) {
  std::array<double, 3> sums = {static_cast<double>(tokens), requests.save ? 1.0 : 0.0,
                                requests.yield.has_value() ? 1.0 : 0.0};
  LLM_RETURN_IF_ERROR(Sum("step.agree", sums.data(), sums.size()));
  return Agreement{.tokens = static_cast<int64_t>(sums[0]), .save = sums[1] > 0, .yield = sums[2] > 0};
}

absl::StatusOr<data::StepBatch> Run::NextBatch() {
  InPhase data(&setup_.phases, Phase::kData);
  return loader_->Next();
}

absl::StatusOr<contract::ExitCode> Run::Steps() {
  setup_.phases.Ready(state_.step);
  setup_.control.Ready(state_.step);
  while (state_.step < config_.training.steps) {
    absl::Duration begun = Now().monotonic;
    LLM_ASSIGN_OR_RETURN(data::StepBatch batch, NextBatch());
    LLM_ASSIGN_OR_RETURN(Requests requests, TakeRequests());
    LLM_ASSIGN_OR_RETURN(Agreement agreed, Agree(CountTokens(batch), requests));
    if (agreed.yield) {
      setup_.log.line(absl::StrCat("yielding after step ", state_.step, ": ",
                              requests.yield.value_or("another rank was asked to")));
      return End(contract::kExitYielded);
    }
    // A failed save has been logged, and the run goes on.
    if (agreed.save) SaveIfNew().IgnoreError();
    LLM_RETURN_IF_ERROR(DoStep(batch, agreed.tokens, begun));
  }
  return End(contract::kExitOk);
}

absl::Status Run::DoStep(const data::StepBatch& batch, int64_t tokens, absl::Duration begun) {
  LLM_ASSIGN_OR_RETURN(StepResult result, stepper_->Run(batch, tokens));
  result.data_wait_seconds = batch.wait_seconds;
  double seconds = absl::ToDoubleSeconds(Now().monotonic - begun);
  data_wait_seconds_ += batch.wait_seconds;
  step_seconds_ += seconds;
  reporter_->Step(state_.step, result, seconds);
  int64_t samples = config_.training.global_batch_size;
  if (rank() == 0 && result.skipped) {
    state_.ledger.AppendSkipped(identity_.sampler_digest, setup_.generation.generation, samples);
  } else if (rank() == 0) {
    state_.ledger.Append(identity_.sampler_digest, setup_.generation.generation, samples);
  }
  if (result.skipped) LLM_RETURN_IF_ERROR(CountSkip(result));
  LLM_RETURN_IF_ERROR(Validate());
  int64_t every = config_.checkpoint.every_steps;
  // A failed save has been logged, and the run goes on. The last step's checkpoint is End's.
  if (every > 0 && state_.step % every == 0 && state_.step < config_.training.steps) SaveIfNew().IgnoreError();
  return absl::OkStatus();
}

absl::Status Run::CountSkip(const StepResult& result) {
  int64_t skipped = state_.skipped_steps();
  std::string what = absl::StrFormat("step %d skipped: loss %g, gradient norm %g; %d skipped of nanBudget %d",
                                     state_.step, result.loss, result.gradient_norm, skipped,
                                     config_.training.nan_budget);
  setup_.log.alarm(what);
  if (skipped <= config_.training.nan_budget) return absl::OkStatus();
  return WithExitCode(
      absl::AbortedError(absl::StrCat(what, "; lower the learning rate, or raise faultTolerance.nanBudget")),
      contract::kExitUser);
}

absl::Status Run::Validate() {
  if (validator_ == nullptr) return absl::OkStatus();
  bool due = state_.step % config_.training.validation_every_steps == 0 || state_.step == config_.training.steps;
  if (!due) return absl::OkStatus();
  setup_.phases.Begin(Activity::kValidation);
  LLM_ASSIGN_OR_RETURN(double loss, validator_->Run(state_.model(), setup_.communicator));
  setup_.phases.Begin(Activity::kTraining);
  reporter_->Validation(state_.step, loss);
  return absl::OkStatus();
}

absl::Status Run::SaveIfNew() {
  if (rank() != 0 || state_.step == 0 || keeper_->last_saved_step() == state_.step) return absl::OkStatus();
  setup_.phases.Begin(Activity::kCheckpoint);
  absl::Status saved = [&] {
    InPhase writing(&setup_.phases, Phase::kWriting);
    return keeper_->Save(state_);
  }();
  setup_.phases.Begin(Activity::kTraining);
  return saved;
}

void Run::LogWaiting() const {
  if (step_seconds_ > 0) {
    setup_.log.line(absl::StrFormat("data: waited %.2f s in %.1f s of steps (%.2f%%)", data_wait_seconds_,
                                    step_seconds_, 100 * data_wait_seconds_ / step_seconds_));
  }
  for (const auto& [site, use] : setup_.communicator.statistics()) {
    setup_.log.line(absl::StrFormat("communication %s: %d calls, %.1f MB, %.2f s", site, use.calls,
                                    static_cast<double>(use.bytes) / 1e6, use.seconds));
  }
}

absl::StatusOr<contract::ExitCode> Run::End(contract::ExitCode code) {
  setup_.phases.Begin(Activity::kEnding);
  // Nobody leaves while a peer may still be reading from it.
  LLM_RETURN_IF_ERROR(setup_.communicator.Collective("run.end", Axis::kData, Op::kBarrier, {}));
  LogWaiting();
  LLM_RETURN_IF_ERROR(WithExitCode(SaveIfNew(), contract::kExitInfrastructure));
  LLM_RETURN_IF_ERROR(AwaitCommits());
  return code;
}

absl::Status Run::AwaitCommits() {
  setup_.phases.Begin(Activity::kEnding);
  InPhase commit(&setup_.phases, Phase::kCommit);
  absl::Duration said = Now().monotonic;
  while (keeper_->commit_pending()) {
    setup_.control.Wait(absl::Seconds(1));
    LLM_RETURN_IF_ERROR(TakeRequests().status());
    if (Now().monotonic - said > absl::Seconds(30)) {
      said = Now().monotonic;
      setup_.log.line("waiting for the coordinator to commit the last checkpoint");
    }
  }
  if (keeper_->refusal().empty()) return absl::OkStatus();
  return WithExitCode(absl::FailedPreconditionError(keeper_->refusal()), contract::kExitInfrastructure);
}

}  // namespace

absl::StatusOr<contract::ExitCode> RunTraining(const RunSetup& setup) {
  Run run(setup);
  absl::Status prepared = run.Prepare();
  absl::StatusOr<contract::ExitCode> outcome =
      prepared.ok() ? run.Steps() : absl::StatusOr<contract::ExitCode>(prepared);
  if (outcome.ok()) return outcome;
  // A halt aborts the collective that this rank waits in; the halt is the cause then, not the collective.
  Requests requests = setup.control.Take();
  if (requests.halt.has_value()) {
    return WithExitCode(absl::UnavailableError(requests.halt->reason), requests.halt->exit_code);
  }
  return outcome;
}

}  // namespace llmctl::trainer
