// What has crashed the coordinator so often that it is kept apart, so that everything else goes on.
//
//   job         suspended (core/quarantine.h); after as many crashes again, given up
//   node        refused when it says hello
//   submission  refused: a client repeats one that was never answered
//
// Crashes are counted in the store before anything is loaded, so that one which comes back at each load ends too. They
// are forgotten after a day, and when an operator or a user gives the entity another chance.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "common/base/instant.h"
#include "common/base/mutex.h"
#include "coordinator/core/state.h"
#include "coordinator/runtime/crash_marker.h"
#include "coordinator/store/store.h"

namespace llmctl::runtime {

// At a start, before Load(): what the marker of the process before says is added to the counts in the store, which are
// returned.
absl::StatusOr<std::vector<store::CrashRecord>> CountCrash(CrashMarker* marker, store::Store& store, int64_t term,
                                                           Instant now);

// At a start, after Load() and before the first event: takes out of play what has crashed too often or could not be
// read. The changes have been made to `state`; they are to be committed before anything else.
std::vector<store::Change> ApplyQuarantine(std::vector<store::CrashRecord>& crashes,
                                           const std::vector<store::DamagedRecord>& damaged, core::State& state,
                                           Instant now);

// While the coordinator runs. Thread-safe.
class Quarantine {
 public:
  struct Entry {
    store::CrashRecord crash;
    std::string reason;
  };

  // As a start finds them.
  struct Records {
    std::vector<store::CrashRecord> crashes;
    std::vector<store::DamagedRecord> damaged;
  };

  explicit Quarantine(const Records& records);

  // Why the entity is refused, or OK.
  absl::Status Check(absl::string_view kind, absl::string_view id) const;
  bool Contains(const std::string& entity) const;
  std::vector<Entry> List() const;
  void Release(const std::string& entity);

 private:
  mutable Mutex mutex_;
  std::map<std::string, Entry, std::less<>> entries_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace llmctl::runtime
