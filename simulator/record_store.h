// The coordinator's records as they are durable: a value that outlives every crash. It takes the changes that the
// real commit pipeline makes, and holds each against what it replaces: what is durable only moves forward.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "coordinator/core/state.h"
#include "coordinator/store/store.h"

namespace llmctl::simulator {

class RecordStore {
 public:
  using Jobs = std::map<JobId, std::shared_ptr<const Job>>;
  using Nodes = std::map<NodeId, std::shared_ptr<const Node>>;

  // What the change breaks, in words; empty when nothing.
  std::string Apply(const store::Change& change);

  // With those records alone that the changes replace.
  RecordStore ReplacedBy(const std::vector<store::Change>& batch) const;
  store::Records Read() const;
  // What of `state` is not exactly as it is here, the volatile part left out; empty when nothing.
  std::string Difference(const core::State& state) const;
  std::string Difference(const store::Records& records) const;

  const Jobs& jobs() const { return jobs_; }
  const Nodes& nodes() const { return nodes_; }
  const store::CounterRecord& counters() const { return counters_; }
  const Job* Find(const JobId& id) const;
  int64_t revision() const { return counters_.revision; }
  // Jobs that were written since the last call.
  std::set<JobId> TakeChanged();

 private:
  std::string PutJob(std::shared_ptr<const Job> job);

  store::CounterRecord counters_;
  Jobs jobs_;
  Nodes nodes_;
  std::map<JobId, int64_t> last_event_;  // of each job's history
  std::set<JobId> changed_;
};

}  // namespace llmctl::simulator
