// The coordinator's records as they are on its disk: a value that outlives every crash. It takes the changes that the
// real commit pipeline makes, and holds each against what it replaces: what is durable only moves forward.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "coordinator/core/state.h"
#include "coordinator/store/store.h"

namespace llmctl::simulator {

class RecordStore {
 public:
  // What the change breaks, in words; empty when nothing.
  std::string Apply(const store::Change& change);

  core::State Load() const;
  // The part of `state` that is not volatile is exactly this.
  bool Holds(const core::State& state) const;

  const std::map<JobId, Job>& jobs() const { return jobs_; }
  int64_t revision() const { return counters_.revision; }

 private:
  std::string PutJob(const Job& job);

  store::CounterRecord counters_;
  std::map<JobId, Job> jobs_;
  std::map<NodeId, Node> nodes_;
  std::map<JobId, int64_t> last_event_;  // of each job's history
};

}  // namespace llmctl::simulator
