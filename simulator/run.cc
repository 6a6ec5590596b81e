#include "simulator/run.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "simulator/coordinator.h"
#include "simulator/faults.h"
#include "simulator/host.h"
#include "simulator/network.h"
#include "simulator/shared_disk.h"
#include "simulator/trainers.h"
#include "simulator/users.h"

namespace llmctl::simulator {
namespace {

// After the faults: deadlines (120 s), back-off (60 s), yields (5 min), and the work that is left.
constexpr absl::Duration kConvergenceBound = absl::Hours(2);
constexpr absl::Duration kRestCheck = absl::Seconds(5);

class World {
 public:
  explicit World(const RunOptions& options)
      : sim_(options.seed, options.mutant, options.print_trace),
        host_count_(2 + sim_.Pick(3)),
        network_(sim_, host_count_),
        trainers_(sim_, disk_),
        coordinator_(sim_, network_, [this](int host) { return hosts_[host]->Describe(); }) {
    int devices = 0;
    for (int i = 0; i < host_count_; ++i) {
      int here = 1 + sim_.Pick(2);
      devices += here;
      hosts_.push_back(std::make_unique<Host>(sim_, network_, trainers_, disk_, Host::Machine{i, here}));
      hosts_.back()->set_coordinator_up([this] { return coordinator_.up(); });
      hosts_.back()->set_on_retired([this](const GenerationId& id, int rank) { CheckRetired(id, rank); });
    }
    users_ = std::make_unique<Users>(sim_, coordinator_, devices);
    faults_ = std::make_unique<Faults>(sim_, network_, coordinator_, trainers_, hosts_);
    network_.Connect({
        .at_coordinator = [this](int64_t link, int host, const agent::AgentMessage& m) {
          coordinator_.OnMessage(link, host, m);
        },
        .at_agent = [this](int64_t link, int host, const agent::Event& m) { hosts_[host]->OnMessage(link, m); },
        .closed_at_coordinator = [this](int64_t link, int) { coordinator_.OnLinkClosed(link); },
        .closed_at_agent = [this](int64_t link, int host) { hosts_[host]->OnLinkClosed(link); },
    });
  }

  Outcome Run() {
    coordinator_.Start();
    for (auto& host : hosts_) host->StartAgent();
    absl::Duration trouble = sim_.Between(absl::Minutes(2), absl::Minutes(12));
    users_->Begin(2 + sim_.Pick(5), trouble);
    faults_->Begin();
    RunUntil(trouble);
    sim_.Trace("all is repaired");
    faults_->Heal();
    users_->Calm();
    WaitForRest(sim_.now().monotonic + kConvergenceBound);
    CheckPromises();
    return {sim_.violation(), sim_.trace_hash(), sim_.actions(), sim_.now().monotonic, sim_.probes()};
  }

 private:
  void RunUntil(absl::Duration end) {
    bool reached = false;
    sim_.After(end - sim_.now().monotonic, [&reached] { reached = true; });
    while (!reached && sim_.RunNext()) CheckPromises();
  }

  void WaitForRest(absl::Duration bound) {
    std::string unrest = "it never began";
    while (!sim_.failed() && sim_.now().monotonic < bound) {
      RunUntil(sim_.now().monotonic + kRestCheck);
      unrest = FindUnrest();
      if (unrest.empty()) return;
    }
    if (!sim_.failed()) sim_.Violation(absl::StrCat("no rest after the faults: ", unrest));
  }

  // An agent forgets how a rank of a live gang ended only when that is durable.
  void CheckRetired(const GenerationId& id, int rank) {
    auto job = coordinator_.store().jobs().find(id.job);
    if (job == coordinator_.store().jobs().end() || !HasLiveGang(job->second.phase)) return;
    const Attempt& attempt = *job->second.attempt;
    if (attempt.generation != id.generation || attempt.ranks[rank].exit.has_value()) return;
    sim_.Violation(
        absl::StrCat("how rank ", rank, " of ", id.job.value(), " ended was forgotten before it was durable"));
  }

  // Only when the store may have changed: a look at every promise costs more than a step.
  void CheckPromises() {
    if (coordinator_.store().revision() == checked_revision_) return;
    checked_revision_ = coordinator_.store().revision();
    std::string broken = users_->BrokenPromise();
    if (!broken.empty()) sim_.Violation(broken);
    for (const auto& [id, job] : coordinator_.store().jobs()) {
      for (const CheckpointRecord& checkpoint : job.checkpoints) {
        GenerationId writer{id, checkpoint.attempt, checkpoint.generation};
        if (checkpoint.path == CheckpointPath(writer, checkpoint.step)) continue;
        sim_.Violation(absl::StrCat("generation ", checkpoint.generation, " of ", id.value(), " has committed ",
                                    checkpoint.path, ", which another wrote"));
      }
      bool misconfigured = job.failure.failure_class == FailureClass::kUser && job.failure.outlook == Outlook::kNever;
      if (misconfigured && job.phase == JobPhase::kFailed &&
          job.requirements.checkpoint_directory == kSharedDirectory) {
        sim_.Violation(absl::StrCat("job ", id.value(), " was given up as misconfigured: ", job.reason));
      }
      if (job.phase != JobPhase::kSucceeded) continue;
      if (job.checkpoints.empty() || job.checkpoints.back().step != DecodeWorkload(job.spec).steps) {
        sim_.Violation(absl::StrCat("job ", id.value(), " succeeded without its last checkpoint"));
      }
    }
  }

  // What is not yet as it must be in peace; empty when the world is at rest.
  std::string FindUnrest() const {
    if (users_->Waiting()) return "a submission was never accepted";
    const core::State& state = coordinator_.state();
    for (const auto& host : hosts_) {
      if (!state.connected.contains(host->node())) return absl::StrCat(host->node().value(), " has no link");
      if (!host->agent().gangs.empty()) return absl::StrCat(host->node().value(), " still has a gang");
      if (!host->agent().outbox.empty()) return absl::StrCat(host->node().value(), " still offers a checkpoint");
    }
    for (const auto& [id, job] : state.jobs) {
      if (IsTerminal(job.phase) || job.phase == JobPhase::kSuspended) continue;
      if (job.phase == JobPhase::kQueued && users_->IsTooLarge(id) && state.waiting_reason.contains(id)) continue;
      return absl::StrCat("job ", id.value(), " is ", JobPhaseName(job.phase), " (", job.reason, ")");
    }
    if (!state.device_owner.empty()) return "a device is still owned";
    if (!trainers_.Alive().empty()) return "a trainer still runs";
    return coordinator_.settled() ? "" : "a commit is under way";
  }

  Simulation sim_;
  const int host_count_;
  SharedDisk disk_;
  Network network_;
  Trainers trainers_;
  Coordinator coordinator_;
  std::vector<std::unique_ptr<Host>> hosts_;
  std::unique_ptr<Users> users_;
  std::unique_ptr<Faults> faults_;
  int64_t checked_revision_ = -1;
};

}  // namespace

Outcome RunSeed(const RunOptions& options) {
  auto world = std::make_unique<World>(options);
  return world->Run();
}

}  // namespace llmctl::simulator
