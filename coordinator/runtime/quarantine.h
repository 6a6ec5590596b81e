// What has crashed the coordinator so often that it is kept apart, so that everything else goes on.
//
//   job         suspended (core/quarantine.h), until a user resumes it
//   node        refused when it says hello; it counts as lost then, and its jobs go on elsewhere
//   submission  refused: a client repeats one that was never answered
//
// What crashes the coordinator even so, as often again, or cannot be read at all gives way to a stand-in
// (model/stand_in.h), and its record is kept. When its crashes have been forgotten, the next start that can read the
// record of a job puts it back in its place, suspended.
//
// Crashes are counted in the store before anything is loaded, so that one which comes back at each load ends too. A
// single one is forgotten after a day; all are when an operator or a user gives the entity another chance.
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

// As a start finds it.
struct KeptApart {
  std::vector<store::CrashRecord> crashes;
  std::vector<store::DamagedRecord> damaged;      // found now
  std::vector<store::DamagedRecord> kept_before;  // by an earlier start
  std::vector<Job> recovered;                     // of those
};

// At a start, after Load() and before the first event: takes out of play what has crashed too often or could not be
// read. The changes have been made to `state` and `kept`; they are to be committed before anything else.
std::vector<store::Change> ApplyQuarantine(KeptApart& kept, core::State& state, Instant now);

// While the coordinator runs. Thread-safe.
class Quarantine {
 public:
  struct Entry {
    store::CrashRecord crash;
    std::string reason;
    bool record_kept = false;  // a stand-in is in its place
  };

  explicit Quarantine(const KeptApart& kept);

  // Why the entity is refused, or OK.
  absl::Status Check(absl::string_view kind, absl::string_view id) const;
  bool Contains(const std::string& entity) const;
  std::vector<Entry> List() const;
  // Forgets its crashes, with the changes that make it durable. A record that is kept of a job stays for the next
  // start; one of a node is of no use any more, for all but its standing is in its hello.
  std::vector<store::Change> Release(const std::string& entity);

 private:
  mutable Mutex mutex_;
  std::map<std::string, Entry, std::less<>> entries_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace llmctl::runtime
