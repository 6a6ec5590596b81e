// TimerQueue: which of the core's timers are due.
//
// A timer either bounds what somebody else may take (a check, a start, a stop, a drain, the grace after a start), or
// keeps somebody's wish (a time limit, a back-off). They differ when we ourselves stood still: the answers of that time
// have not been read yet, so the first kind waits longer by the stall; a wish is owed at its time.
//
// Pure: time is an argument. Single-threaded.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "absl/time/time.h"

#include "common/base/instant.h"
#include "coordinator/core/command.h"

namespace llmctl::runtime {

class TimerQueue {
 public:
  void Arm(const core::ArmTimer& timer, Instant now);
  // We could hear nobody for `stall`: whoever is waited for gets that much longer, and at least until `earliest`
  // (monotonic).
  void Extend(absl::Duration stall, absl::Duration earliest);

  // Removes and returns the timers that are due, oldest first.
  std::vector<int64_t> TakeDue(Instant now);
  // When the next is due (monotonic); never, if there is none.
  absl::Duration next_due() const;

 private:
  struct Entry {
    int64_t timer = 0;
    bool awaits_others = false;
  };
  std::multimap<absl::Duration, Entry> entries_;  // by monotonic due time
};

}  // namespace llmctl::runtime
