// The stages of a plan in their order, for every process that takes part.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "worker/data/pipeline/cleaner.h"
#include "worker/data/pipeline/stage.h"
#include "worker/data/pipeline/stage_board.h"
#include "worker/data/pipeline/workspace.h"
#include "worker/data/tokenizer/tokenizer.h"

namespace llmctl::data {

class Pipeline {
 public:
  // `workspace` outlives it. The dataset is written to `output`.
  Pipeline(const Workspace& workspace, std::string output);

  int stages() const { return static_cast<int>(steps_.size()); }
  // "near: signatures"
  const std::string& StageName(int stage) const { return steps_[stage].name; }
  // When all stages before are done.
  absl::StatusOr<std::unique_ptr<Stage>> MakeStage(int stage);
  // The folder to which nothing is written after this stage; empty if there is none.
  std::string FolderFinishedBy(int stage) const;

  struct Observer {
    virtual ~Observer() = default;
    // `progress` is that of all processes, until the stage's end.
    virtual void Begin(int stage, absl::string_view name, const Stage& made, const StageProgress& progress) = 0;
    // When all of it is done, or it failed: `progress` is not looked at any more. An error ends the run.
    virtual absl::Status End(int stage, bool done) = 0;
    // Called now and then while other processes are waited for: an error ends the run.
    virtual absl::Status Check() = 0;
  };
  // Takes part in all stages. `observer` may be null.
  absl::Status Run(const ProcessLimits& limits, StageBoard& board, Observer* observer);

 private:
  enum class Kind { kClean, kKeys, kSpread, kResult, kEncode, kWrite };
  struct Step {
    Kind kind;
    int pass;  // of deduplication
    std::string name;
  };
  absl::StatusOr<std::unique_ptr<Stage>> MakeDedup(const Step& step);
  absl::Status LoadTokenizer();
  absl::Status RunOne(int number, Stage& stage, const ProcessLimits& limits, StageBoard& board, Observer* observer);
  // Until the other processes have done their tasks too.
  absl::Status AwaitOthers(int stage, int tasks, StageBoard& board, Observer* observer);

  const Workspace& workspace_;
  const std::string output_;
  std::vector<Step> steps_;
  std::vector<Segment> segments_;  // once the first stage is done
  std::shared_ptr<const Tokenizer> tokenizer_;  // once it is needed
};

}  // namespace llmctl::data
