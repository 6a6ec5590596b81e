// What coordinators store their records on: a checked value, and in a share of the schedules the real SQLite store on
// a disk that forgets what was not synced.
//
// The value is what must be durable; with the real store it is held against what SQLite has after every commit, and
// after every crash against what SQLite recovers. A commit in which the disk died may have happened or not, but
// nothing in between.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "coordinator/core/state.h"
#include "coordinator/store/store.h"
#include "simulator/crash_disk.h"
#include "simulator/crash_rehearsal.h"
#include "simulator/record_store.h"
#include "simulator/simulation.h"

namespace llmctl::simulator {

class CoordinatorDisk {
 public:
  struct Opened {
    int64_t term = 0;
    core::State state;
  };

  CoordinatorDisk(Simulation& sim, bool real_store);

  // A coordinator starts: it takes the next term, and loads.
  absl::StatusOr<Opened> Open();
  // FailedPrecondition: another has taken over.
  absl::Status Commit(int64_t term, const std::vector<store::Change>& batch);
  // A coordinator crashes while `batch` is on its way to the disk.
  void Rehearse(const std::vector<store::Change>& batch);
  // The last process that had the store open has ended.
  void Abandon();

  const RecordStore& records() const { return records_; }
  RecordStore& records() { return records_; }
  int64_t term() const { return term_; }
  bool real_store() const { return real_ != nullptr; }
  // The disk died inside the last commit, and the machine with it.
  bool dead() const { return real_ != nullptr && real_->disk.dead(); }
  // How long a commit takes.
  absl::Duration CommitTime();

  // ---- faults ----
  void Fill(absl::Duration length) { full_until_ = sim_.now() + length; }
  void SlowDown(absl::Duration length) { slow_until_ = sim_.now() + length; }
  void DieInCommit(int operations);
  void Heal();

 private:
  struct Real {
    explicit Real(const std::string& name) : disk(name) {}
    CrashDisk disk;
    std::unique_ptr<store::Store> store;  // while a coordinator has it
    // A batch of which nobody knows whether it was committed.
    std::optional<std::vector<store::Change>> in_doubt;
  };

  absl::StatusOr<int64_t> OpenReal();
  void SettleDoubt(const store::Records& found);
  absl::Status CommitReal(int64_t term, const std::vector<store::Change>& batch);
  void CheckHistory();
  void Apply(const std::vector<store::Change>& batch);

  Simulation& sim_;
  const absl::Duration commit_time_;
  RecordStore records_;
  int64_t term_ = 0;
  std::unique_ptr<Real> real_;
  CrashRehearsal rehearsal_;
  absl::Duration full_until_;
  absl::Duration slow_until_;
};

}  // namespace llmctl::simulator
