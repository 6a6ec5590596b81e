#include "worker/trainer/train_command.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <utility>

#include <torch/version.h>
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "common/base/file.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "worker/contract/phase_page.h"
#include "worker/contract/shim_config.h"
#include "worker/contract/trainer_config.h"
#include "worker/engine/comm/collective.h"
#include "worker/engine/comm/gloo.h"
#include "worker/engine/comm/ring.h"
#include "worker/trainer/alone_control.h"
#include "worker/trainer/failure.h"
#include "worker/trainer/link_store.h"
#include "worker/trainer/run.h"
#include "worker/trainer/self_picture.h"
#include "worker/trainer/shim_control.h"

namespace llmctl::trainer {
namespace {

using engine::comm::Axis;
using engine::comm::Backend;

// A store call that waits for no rank waits for the coordinator, which may be starting again.
constexpr absl::Duration kStoreCallTimeout = absl::Minutes(10);
// What a rank that has lost a peer gives for the picture of where that was: it is about to be ended anyway, but the
// next attempt waits for its devices.
constexpr absl::Duration kPicturePatience = absl::Milliseconds(100);

// Pictures of crashes while it lives; `page` may be null.
class CrashPictures {
 public:
  explicit CrashPictures(const contract::PhasePage* page) : on_(page != nullptr) {
    if (on_) PictureCrashes(page);
  }
  ~CrashPictures() {
    if (on_) PictureCrashes(nullptr);
  }
  CrashPictures(const CrashPictures&) = delete;
  CrashPictures& operator=(const CrashPictures&) = delete;

 private:
  const bool on_;
};

std::map<std::string, std::string> Numerics(const TrainOptions& options, const std::string& precision,
                                            int world_size) {
  return {{"precision", precision},
          {"isa", engine::kernels::IsaName(options.isa)},
          {"threads", absl::StrCat(options.threads)},
          {"world_size", absl::StrCat(world_size)},
          {"libtorch", TORCH_VERSION}};
}

absl::StatusOr<contract::ExitCode> TrainAlone(const TrainOptions& options, const contract::TrainerConfig& config,
                                              const std::atomic<bool>& terminated, const Log& log) {
  AloneControl control(config.checkpoint.keep_last, terminated);
  contract::PhasePage phases;
  engine::comm::Communicator communicator({}, nullptr);
  return RunTraining({.config = config,
                      .generation = {JobId(config.job), /*attempt=*/1, options.generation},
                      .communicator = communicator,
                      .phases = phases,
                      .control = control,
                      .log = log,
                      .isa = options.isa,
                      .numerics = Numerics(options, config.training.precision, 1)});
}

absl::StatusOr<std::string> FabricAddress(const contract::Assignment& assignment) {
  auto own = std::find_if(assignment.rank_table.begin(), assignment.rank_table.end(),
                          [&](const contract::RankAddress& entry) { return entry.rank == assignment.rank; });
  if (own == assignment.rank_table.end()) {
    return absl::InternalError(absl::StrCat("the assignment's rank table has no rank ", assignment.rank));
  }
  return own->fabric_address;
}

// The data-parallel group; empty for a single rank.
absl::StatusOr<std::map<Axis, std::unique_ptr<Backend>>> FormGroups(const contract::Assignment& assignment,
                                                                    LinkStore& store, contract::PhasePage& phases) {
  contract::InPhase rendezvous(&phases, contract::Phase::kRendezvous);
  std::map<Axis, std::unique_ptr<Backend>> axes;
  if (assignment.world_size == 1) return axes;
  LLM_ASSIGN_OR_RETURN(std::string address, FabricAddress(assignment));
  LLM_ASSIGN_OR_RETURN(axes[Axis::kData], engine::comm::CreateGlooBackend({.store = &store,
                                                                           .group = "data",
                                                                           .rank = assignment.rank,
                                                                           .size = assignment.world_size,
                                                                           .fabric_address = address}));
  return axes;
}

absl::StatusOr<contract::ExitCode> TrainInJob(const TrainOptions& options, const contract::TrainerConfig& config,
                                              ShimLink& link, const std::atomic<bool>& terminated, const Log& log) {
  ShimControl control(link, terminated);
  LLM_ASSIGN_OR_RETURN(contract::Assignment assignment, control.WaitForAssignment());
  log.line(absl::StrCat("rank ", assignment.rank, " of ", assignment.world_size, ", attempt ",
                        assignment.generation.attempt, ", generation ", assignment.generation.generation));
  std::filesystem::path directory = std::filesystem::path(options.config_path).parent_path();
  LLM_ASSIGN_OR_RETURN(std::unique_ptr<engine::comm::Ring> ring,
                       engine::comm::Ring::Create(directory / contract::kCollectivesFile));
  LLM_ASSIGN_OR_RETURN(std::unique_ptr<contract::PhasePage> phases,
                       contract::PhasePage::Create(directory / contract::kPhaseFile));
  CrashPictures crash_pictures(options.pictures ? phases.get() : nullptr);
  LinkStore store(link, kStoreCallTimeout);
  absl::StatusOr<std::map<Axis, std::unique_ptr<Backend>>> axes = FormGroups(assignment, store, *phases);
  if (!axes.ok()) {
    Requests requests = control.Take();
    if (!requests.halt.has_value()) return axes.status();
    return WithExitCode(absl::UnavailableError(requests.halt->reason), requests.halt->exit_code);
  }
  engine::comm::Communicator communicator(*std::move(axes), ring.get(), phases.get());
  if (options.pictures) {
    communicator.OnFirstFailure([&phases] { AskForPicture(*phases, kPicturePatience); });
  }
  // Also when LibTorch throws the communicator must not be aborted after its end.
  ShimLink::UrgentHandler on_urgent(link, [&communicator] { communicator.Abort(); });
  absl::StatusOr<contract::ExitCode> outcome =
      RunTraining({.config = config,
                   .generation = assignment.generation,
                   .communicator = communicator,
                   .phases = *phases,
                   .control = control,
                   .log = log,
                   .isa = options.isa,
                   .numerics = Numerics(options, config.training.precision, assignment.world_size)});
  if (!outcome.ok()) SayFatal(link, outcome.status());
  return outcome;
}

}  // namespace

absl::StatusOr<contract::ExitCode> Train(const TrainOptions& options, ShimLink* link,
                                         const std::atomic<bool>& terminated, const Log& log) {
  absl::StatusOr<std::string> json = ReadFile(options.config_path);
  if (!json.ok()) return WithExitCode(Annotate(json.status(), "read configuration"), contract::kExitConfig);
  absl::StatusOr<contract::TrainerConfig> config = contract::DecodeTrainerConfig(*json);
  if (!config.ok()) return Annotate(config.status(), "configuration ", options.config_path);
  if (link == nullptr) return TrainAlone(options, *config, terminated, log);
  return TrainInJob(options, *config, *link, terminated, log);
}

}  // namespace llmctl::trainer
