#include "worker/data/pipeline/dedup_stages.h"

#include <algorithm>
#include <utility>

#include "common/base/status.h"
#include "worker/data/dedup/signer.h"
#include "worker/data/dedup/spacy_words.h"
#include "worker/data/pipeline/settings.h"
#include "worker/data/pipeline/survivors.h"
#include "worker/data/text/word_splitter.h"

namespace llmctl::data {
namespace {

TaskResources Resources(const Workspace& workspace, int64_t memory_bytes) {
  return {.files = &workspace.quick_files(),
          .memory_bytes = std::max<uint64_t>(kTaskMemoryMin, static_cast<uint64_t>(memory_bytes))};
}

// A worker whose tasks are a function of their number.
template <typename Function>
class FunctionWorker : public StageWorker {
 public:
  explicit FunctionWorker(Function run) : run_(std::move(run)) {}
  absl::Status Run(int task) override { return run_(task); }

 private:
  Function run_;
};

template <typename Function>
std::unique_ptr<StageWorker> MakeFunctionWorker(Function run) {
  return std::make_unique<FunctionWorker<Function>>(std::move(run));
}

class DedupStage : public Stage {
 public:
  DedupStage(const Workspace& workspace, std::vector<Segment> segments, int pass, DedupStep step)
      : workspace_(workspace), segments_(std::move(segments)), pass_(pass), step_(step) {
    const contract::CorpusConfig& config = workspace.plan().config;
    near_ = config.near_dedup && pass == DedupPasses(config) - 1;
  }

  absl::Status Prepare() {
    if (!near_) {
      exact_plan_ = workspace_.PlanOfExact(pass_, segments_);
      return Validate(exact_plan_.settings);
    }
    near_plan_ = workspace_.PlanOfNear(segments_);
    if (step_ != DedupStep::kKeys) return Validate(near_plan_.settings);
    SplitWords split_words;
    if (near_plan_.settings.recipe == ShingleRecipe::kDatatrove) {
      splitter_ = std::make_unique<WordSplitter>();
      split_words = SpacyWords(*splitter_);
    }
    LLM_ASSIGN_OR_RETURN(signer_, Signer::Make(near_plan_.settings, split_words));
    return absl::OkStatus();
  }

  int tasks() const override {
    if (step_ == DedupStep::kKeys) return static_cast<int>(segments_.size());
    if (step_ == DedupStep::kResult) return 1;
    return near_ ? BandTasks(near_plan_.settings) : kRangeTasks;
  }
  int64_t amount() const override { return step_ == DedupStep::kKeys ? TextBytes(segments_) : tasks(); }
  absl::string_view unit() const override { return step_ == DedupStep::kKeys ? "bytes" : "tasks"; }

  absl::StatusOr<std::unique_ptr<StageWorker>> MakeWorker(int, int64_t memory_bytes, StageProgress& progress) override {
    TaskResources resources = Resources(workspace_, memory_bytes);
    if (step_ == DedupStep::kKeys) return MakeKeyWorker(resources, progress);
    return MakeFunctionWorker([this, resources, &progress](int task) {
      absl::Status status = step_ == DedupStep::kSpread ? Spread(task, resources) : Conclude(resources);
      progress.done += 1;
      return status;
    });
  }

 private:
  absl::StatusOr<std::unique_ptr<StageWorker>> MakeKeyWorker(const TaskResources& resources, StageProgress& progress) {
    LLM_ASSIGN_OR_RETURN(std::unique_ptr<Survivors> opened, Survivors::Open(workspace_, segments_, pass_));
    std::shared_ptr<Survivors> survivors = std::move(opened);
    return MakeFunctionWorker([this, survivors, resources, &progress](int segment) -> absl::Status {
      if (!near_) {
        LLM_ASSIGN_OR_RETURN(std::unique_ptr<KeyTask> task, KeyTask::Open(exact_plan_, segment, resources));
        return Feed(*task, *survivors, segment, progress);
      }
      LLM_ASSIGN_OR_RETURN(std::unique_ptr<SignatureTask> task,
                           SignatureTask::Open(near_plan_, segment, *signer_, resources));
      return Feed(*task, *survivors, segment, progress);
    });
  }

  template <typename Task>
  absl::Status Feed(Task& task, Survivors& survivors, int segment, StageProgress& progress) {
    if (task.done()) {
      progress.done += static_cast<int64_t>(segments_[segment].bytes);
      return absl::OkStatus();
    }
    LLM_RETURN_IF_ERROR(survivors.ForEach(
        segment, [&](uint64_t, const DocumentRecord& document, std::string& text, const Loss* loss) -> absl::Status {
          progress.done += static_cast<int64_t>(document.text.size());
          return loss == nullptr ? task.Add(text) : absl::OkStatus();
        }));
    return task.Finish();
  }

  absl::Status Spread(int task, const TaskResources& resources) {
    return near_ ? RunBandTask(near_plan_, task, resources) : RunRangeTask(exact_plan_, task, resources);
  }
  absl::Status Conclude(const TaskResources& resources) {
    return near_ ? RunClusterTask(near_plan_, resources).status() : RunRepeatTask(exact_plan_, resources).status();
  }

  const Workspace& workspace_;
  const std::vector<Segment> segments_;
  const int pass_;
  const DedupStep step_;
  bool near_ = false;
  ExactPlan exact_plan_;
  NearPlan near_plan_;
  std::unique_ptr<const WordSplitter> splitter_;
  std::unique_ptr<Signer> signer_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Stage>> MakeDedupStage(const Workspace& workspace, std::vector<Segment> segments,
                                                      int pass, DedupStep step) {
  auto stage = std::make_unique<DedupStage>(workspace, std::move(segments), pass, step);
  LLM_RETURN_IF_ERROR(stage->Prepare());
  return stage;
}

}  // namespace llmctl::data
