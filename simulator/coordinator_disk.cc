#include "simulator/coordinator_disk.h"

#include <utility>

#include "absl/strings/str_cat.h"

#include "common/base/status.h"
#include "coordinator/runtime/step_output.h"
#include "coordinator/store/sqlite/sqlite_store.h"

namespace llmctl::simulator {
namespace {

constexpr absl::Duration kSlowCommit = absl::Seconds(2);
constexpr int kHistoryMost = 10'000;

}  // namespace

CoordinatorDisk::CoordinatorDisk(Simulation& sim, bool real_store)
    : sim_(sim), commit_time_(sim.dice().Happens(0.3) ? absl::Milliseconds(200) : absl::Milliseconds(8)) {
  if (!real_store) return;
  sim_.Reached(Probe::kRealStore);
  real_ = std::make_unique<Real>("llm-simulator");
}

absl::StatusOr<CoordinatorDisk::Opened> CoordinatorDisk::Open() {
  if (sim_.now() < full_until_) return absl::ResourceExhaustedError("take the next term: the disk is full");
  Opened opened;
  if (real_ != nullptr) {
    LLM_ASSIGN_OR_RETURN(opened.term, OpenReal());
  } else {
    opened.term = term_ + 1;
  }
  term_ = opened.term;
  opened.state = runtime::StateFromRecords(records_.Read());
  if (std::string what = records_.Difference(opened.state); !what.empty()) {
    sim_.Violation(absl::StrCat("the loaded state is not what is stored: ", what));
  }
  return opened;
}

absl::StatusOr<int64_t> CoordinatorDisk::OpenReal() {
  real_->disk.set_full(false);
  if (real_->store == nullptr) {
    LLM_ASSIGN_OR_RETURN(real_->store, store::OpenSqliteStore({.path = "store.db", .vfs = real_->disk.name()}));
    LLM_ASSIGN_OR_RETURN(store::Records found, real_->store->Load());
    SettleDoubt(found);
    CheckHistory();
  }
  return real_->store->AcquireTerm();
}

void CoordinatorDisk::SettleDoubt(const store::Records& found) {
  std::string without = records_.Difference(found);
  std::optional<std::vector<store::Change>> batch = std::exchange(real_->in_doubt, std::nullopt);
  if (without.empty()) {
    if (batch.has_value()) sim_.Reached(Probe::kCommitInDoubtLost);
    return;
  }
  if (!batch.has_value()) {
    sim_.Violation(absl::StrCat("SQLite has not recovered what was committed: ", without, " differs"));
    return;
  }
  sim_.Reached(Probe::kCommitInDoubtKept);
  Apply(*batch);
  if (std::string with = records_.Difference(found); !with.empty()) {
    sim_.Violation(absl::StrCat("SQLite has recovered neither all nor nothing of a commit: ", with, " differs"));
  }
}

// Each job's events are all there.
void CoordinatorDisk::CheckHistory() {
  for (const auto& [id, job] : records_.jobs()) {
    absl::StatusOr<std::vector<JobEventRecord>> events = real_->store->ReadEvents(id, 0, kHistoryMost);
    if (!events.ok() || static_cast<int64_t>(events->size()) != job->last_event) {
      sim_.Violation(absl::StrCat("SQLite has not recovered the history of ", id.value()));
    }
  }
}

void CoordinatorDisk::Apply(const std::vector<store::Change>& batch) {
  for (const store::Change& change : batch) {
    std::string broken = records_.Apply(change);
    if (!broken.empty()) sim_.Violation(broken);
  }
}

absl::Status CoordinatorDisk::Commit(int64_t term, const std::vector<store::Change>& batch) {
  if (sim_.Is(Mutant::kCommitWithoutTerm)) term = term_;
  if (real_ != nullptr) return CommitReal(term, batch);
  if (term != term_) return absl::FailedPreconditionError("another coordinator took over");
  if (sim_.now() < full_until_) return absl::ResourceExhaustedError("the disk is full");
  Apply(batch);
  return absl::OkStatus();
}

absl::Status CoordinatorDisk::CommitReal(int64_t term, const std::vector<store::Change>& batch) {
  real_->disk.set_full(sim_.now() < full_until_);
  absl::Status status = real_->store->Commit(term, batch);
  if (status.ok()) {
    Apply(batch);
  } else if (real_->disk.dead()) {
    // A batch that came after the disk had died was not even begun.
    if (!real_->in_doubt.has_value()) real_->in_doubt = batch;
    return status;
  }
  // It may have died behind the commit, as SQLite moved pages from its log to its file.
  if (real_->disk.dead()) return status;
  absl::StatusOr<store::Records> held = real_->store->Load();
  if (!held.ok()) {
    sim_.Violation(absl::StrCat("the records cannot be read back: ", held.status().message()));
  } else if (std::string what = records_.Difference(*held); !what.empty()) {
    sim_.Violation(absl::StrCat("SQLite does not hold what was committed: ", what, " differs"));
  }
  return status;
}

void CoordinatorDisk::Rehearse(const std::vector<store::Change>& batch) {
  // Its own disk dies for real.
  if (real_ != nullptr) return;
  sim_.Reached(Probe::kCrashRehearsed);
  // How many it throws is SQLite's business, and not to change the schedule.
  Dice dice(sim_.dice().Number());
  std::string wrong = rehearsal_.Run(records_, batch, dice);
  if (!wrong.empty()) sim_.Violation(absl::StrCat("SQLite at a crash: ", wrong));
}

void CoordinatorDisk::Abandon() {
  if (real_ == nullptr || (real_->store == nullptr && !real_->disk.dead())) return;
  // Without this SQLite would write on as it closes.
  real_->disk.Die();
  real_->store.reset();
  bool power_lost = real_->in_doubt.has_value() || sim_.dice().Happens(0.5);
  CrashDisk::Damage damage = real_->disk.Revive(power_lost, sim_.dice());
  if (power_lost) sim_.Reached(Probe::kPowerLoss);
  for (int i = 0; i < damage.dropped; ++i) sim_.Reached(Probe::kWriteDropped);
  for (int i = 0; i < damage.torn; ++i) sim_.Reached(Probe::kWriteTorn);
}

absl::Duration CoordinatorDisk::CommitTime() {
  Dice& dice = sim_.dice();
  if (sim_.now() < slow_until_) {
    sim_.Reached(Probe::kCommitSlow);
    return dice.Between(kSlowCommit / 10, kSlowCommit);
  }
  return dice.Between(absl::Microseconds(200), dice.Happens(0.05) ? 20 * commit_time_ : commit_time_);
}

void CoordinatorDisk::DieInCommit(int operations) {
  if (real_ != nullptr) real_->disk.DieAfter(operations);
}

void CoordinatorDisk::Heal() {
  full_until_ = slow_until_ = absl::ZeroDuration();
  if (real_ != nullptr) real_->disk.SpareLife();
}

}  // namespace llmctl::simulator
