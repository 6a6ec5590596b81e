// phase.page: what a trainer is doing, in a file that anybody may look at and that outlives it.
//
// A rank that hangs cannot be asked, so it says beforehand: one page of shared memory that holds its phase, since
// when, and what it has spent its time on. A change of phase costs two reads of the clock's page and a few stores, so
// every step can afford a dozen. The agent looks at it with every heartbeat.
//
// An activity is what a rank does in the large, and has an allowance of its own before it counts as a hang; a phase is
// where within it the rank is. Times are CLOCK_MONOTONIC, hence only comparable on one host: readers make ages of
// them.
//
// Written by one thread of the trainer, but for the count of pictures, which is the shim's; read by anyone. A reader
// that meets a change tries again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace llmctl::contract {

// kEnding: the last step is done; the last checkpoint is written and waits to be committed.
enum class Activity : uint8_t { kStarting, kTraining, kValidation, kCheckpoint, kEnding };
inline constexpr size_t kActivities = 5;

enum class Phase : uint8_t {
  kOther,
  kData,        // waits for the data loader
  kForward,
  kBackward,
  kCollective,  // the ring says which
  kOptimizer,
  kWriting,     // a checkpoint
  kReading,     // a checkpoint
  kRendezvous,  // the group is being formed
  kCommit,      // waits for the coordinator to commit a checkpoint
};
inline constexpr size_t kPhases = 10;

// "training", "data"; for a person: "in the data loader".
const char* ActivityName(Activity activity);
const char* PhaseName(Phase phase);
const char* PhaseText(Phase phase);

// What lies in the file.
struct PhaseRecord {
  char magic[8] = {'L', 'L', 'M', 'P', 'H', 'A', 'S', '1'};
  uint64_t version = 0;  // odd while the record is being changed
  int64_t pid = 0;
  Activity activity = Activity::kStarting;
  Phase phase = Phase::kOther;
  uint8_t reserved[6] = {};
  int64_t step = 0;          // done so far, those of earlier attempts included
  int64_t steps_here = 0;    // done by this process
  int64_t started_nanoseconds = 0;
  int64_t activity_nanoseconds = 0;  // since when
  int64_t phase_nanoseconds = 0;
  int64_t step_nanoseconds = 0;      // when the newest step was done; before the first, when the rank was ready
  int64_t spent_nanoseconds[kPhases] = {};      // in each phase, the present one not included
  int64_t longest_nanoseconds[kActivities] = {};  // of each activity that has ended
  uint64_t pictures = 0;     // how often the shim has taken the trainer's picture (picture.h)
};
inline constexpr size_t kPhasePageBytes = 4096;
static_assert(sizeof(PhaseRecord) <= kPhasePageBytes);

class PhasePage {
 public:
  // Creates or replaces the file.
  static absl::StatusOr<std::unique_ptr<PhasePage>> Create(const std::string& path);
  // A page that nobody looks at, for a trainer that runs alone.
  PhasePage();
  ~PhasePage();
  PhasePage(const PhasePage&) = delete;
  PhasePage& operator=(const PhasePage&) = delete;

  void Begin(Activity activity);
  // Returns the phase that it ends.
  Phase Enter(Phase phase);
  // The group is formed and the state loaded; `step` steps are done.
  void Ready(int64_t step);
  void StepDone(int64_t step);
  const PhaseRecord& record() const { return *record_; }
  uint64_t pictures() const;

 private:
  explicit PhasePage(void* page);
  class Change;

  std::unique_ptr<PhaseRecord> own_;  // of a page without a file
  PhaseRecord* record_;
};

// The phase until the end of the block; `page` may be null.
class InPhase {
 public:
  InPhase(PhasePage* page, Phase phase) : page_(page), before_(page ? page->Enter(phase) : Phase::kOther) {}
  ~InPhase() {
    if (page_ != nullptr) page_->Enter(before_);
  }
  InPhase(const InPhase&) = delete;
  InPhase& operator=(const InPhase&) = delete;

 private:
  PhasePage* page_;
  Phase before_;
};

// DataLoss if the file is none.
absl::StatusOr<PhaseRecord> ReadPhasePage(const std::string& path);

// Adds one to the count of pictures: the shim's part.
void CountPicture(const std::string& path);

}  // namespace llmctl::contract
