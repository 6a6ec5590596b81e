#include "worker/data/pipeline/pipeline.h"

#include <chrono>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"

#include "common/base/check.h"
#include "common/base/status.h"
#include "worker/data/pipeline/clean_stage.h"
#include "worker/data/pipeline/dedup_stages.h"
#include "worker/data/pipeline/encode_stage.h"
#include "worker/data/pipeline/survivors.h"
#include "worker/data/pipeline/write_stage.h"

namespace llmctl::data {
namespace {

constexpr std::chrono::milliseconds kBoardInterval(5);  // between looks at what other processes have done

}  // namespace

Pipeline::Pipeline(const Workspace& workspace, std::string output)
    : workspace_(workspace), output_(std::move(output)) {
  const contract::CorpusConfig& config = workspace.plan().config;
  steps_.push_back({Kind::kClean, 0, "read and clean"});
  int exact = config.exact_dedup ? static_cast<int>(config.exact_dedup->units.size()) : 0;
  for (int pass = 0; pass < DedupPasses(config); ++pass) {
    bool is_exact = pass < exact;
    std::string what = is_exact ? absl::StrCat("equal ", config.exact_dedup->units[pass], "s") : "near duplicates";
    steps_.push_back({Kind::kKeys, pass, absl::StrCat(what, is_exact ? ": keys" : ": signatures")});
    steps_.push_back({Kind::kSpread, pass, absl::StrCat(what, is_exact ? ": ranges" : ": bands")});
    steps_.push_back({Kind::kResult, pass, absl::StrCat(what, is_exact ? ": repeats" : ": clusters")});
  }
  steps_.push_back({Kind::kEncode, 0, "encode"});
  steps_.push_back({Kind::kWrite, 0, "write"});
  CHECK_LE(steps_.size(), size_t{StageBoard::kStagesMax}) << "more stages than a board has room for";
}

absl::StatusOr<std::unique_ptr<Stage>> Pipeline::MakeStage(int stage) {
  const Step& step = steps_[stage];
  if (step.kind == Kind::kClean) return MakeCleanStage(workspace_);
  if (segments_.empty()) {
    LLM_ASSIGN_OR_RETURN(segments_, workspace_.Segments());
  }
  if (step.kind != Kind::kEncode && step.kind != Kind::kWrite) return MakeDedup(step);
  LLM_RETURN_IF_ERROR(LoadTokenizer());
  if (step.kind == Kind::kEncode) return MakeEncodeStage(workspace_, segments_, *tokenizer_);
  return MakeWriteStage(workspace_, segments_, *tokenizer_, output_);
}

absl::Status Pipeline::LoadTokenizer() {
  if (tokenizer_ == nullptr) tokenizer_ = workspace_.plan().tokenizer;
  if (tokenizer_ != nullptr) return absl::OkStatus();
  LLM_ASSIGN_OR_RETURN(tokenizer_, MakeTokenizer(workspace_.plan().config.tokenizer));
  if (tokenizer_->digest() == workspace_.plan().tokenizer_digest) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("tokenizer ", workspace_.plan().config.tokenizer, " has changed since the run began"));
}

std::string Pipeline::FolderFinishedBy(int stage) const {
  const Step& step = steps_[stage];
  if (step.kind == Kind::kResult) return workspace_.DedupFolder(step.pass);
  return step.kind == Kind::kEncode ? workspace_.TokensFolder() : "";
}

absl::StatusOr<std::unique_ptr<Stage>> Pipeline::MakeDedup(const Step& step) {
  DedupStep dedup = step.kind == Kind::kKeys     ? DedupStep::kKeys
                    : step.kind == Kind::kSpread ? DedupStep::kSpread
                                                 : DedupStep::kResult;
  return MakeDedupStage(workspace_, segments_, step.pass, dedup);
}

absl::Status Pipeline::Run(const ProcessLimits& limits, StageBoard& board, Observer* observer) {
  for (int number = 0; number < stages(); ++number) {
    absl::StatusOr<std::unique_ptr<Stage>> stage = MakeStage(number);
    absl::Status status = stage.status();
    if (status.ok()) status = RunOne(number, **stage, limits, board, observer);
    if (!status.ok()) {
      board.Fail();
      return Annotate(status, StageName(number));
    }
  }
  return absl::OkStatus();
}

absl::Status Pipeline::RunOne(int number, Stage& stage, const ProcessLimits& limits, StageBoard& board,
                              Observer* observer) {
  if (observer != nullptr) observer->Begin(number, StageName(number), stage, board.progress(number));
  absl::Status status = RunStage(stage, limits, *board.Tasks(number, stage.tasks()), board.progress(number));
  if (status.ok()) status = AwaitOthers(number, stage.tasks(), board, observer);
  if (observer == nullptr) return status;
  absl::Status ended = observer->End(number, status.ok());
  return status.ok() ? ended : status;
}

absl::Status Pipeline::AwaitOthers(int stage, int tasks, StageBoard& board, Observer* observer) {
  while (!board.IsDone(stage, tasks)) {
    if (observer != nullptr) LLM_RETURN_IF_ERROR(observer->Check());
    if (board.failed()) return absl::AbortedError("another process of this run has failed");
    std::this_thread::sleep_for(kBoardInterval);
  }
  return absl::OkStatus();
}

}  // namespace llmctl::data
