// The state of the core: everything that decisions are made from.
//
// Load(store) == State but for the fields marked volatile, at every moment between two commits; the simulator
// checks that at each crash point. Ordered containers throughout: their order reaches commands.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "common/base/ids.h"
#include "coordinator/model/job.h"
#include "coordinator/model/node.h"
#include "coordinator/model/plan.h"

namespace llmctl::core {

// Stored counters: ids never come from time or chance.
struct Counters {
  int64_t next_job = 1;
  int64_t revision = 0;  // +1 with every step that changed a record
  bool operator==(const Counters&) const = default;
};

// What a timer is for.
struct Timer {
  enum class Purpose { kBackoff, kProbe, kStart, kStop, kTimeLimit };
  Purpose purpose;
  JobId job;
  int64_t generation = 0;
};

struct State {
  Counters counters;
  std::map<JobId, Job> jobs;
  std::map<NodeId, Node> nodes;

  // ---- volatile: rebuilt from the records, or gained anew after a restart ----
  std::map<std::string, JobId> jobs_by_key;           // project + idempotency key
  std::map<std::pair<NodeId, int>, GenerationId> device_owner;  // also of gangs not yet released
  std::set<NodeId> connected;                          // have a link in this term
  std::map<int64_t, Timer> timers;
  int64_t next_timer = 1;
  std::map<JobId, std::map<NodeId, std::string>> probe_digests;  // answers of a gang being checked
  std::map<JobId, std::string> waiting_reason;          // from the last plan
  bool plan_requested = false;
};

}  // namespace llmctl::core
