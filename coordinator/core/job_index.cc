#include "coordinator/core/job_index.h"

namespace llmctl::core {
namespace {

void Keep(std::set<JobId>& set, const JobId& id, bool member) {
  if (member) {
    set.insert(id);
  } else {
    set.erase(id);
  }
}

}  // namespace

void Reindex(State& state, const JobId& id) {
  auto found = state.jobs.find(id);
  bool exists = found != state.jobs.end();
  bool queued = exists && found->second.phase == JobPhase::kQueued;
  if (!queued) state.waiting_reason.erase(id);
  Keep(state.index.queued, id, queued);
  Keep(state.index.newcomers, id, queued && !state.waiting_reason.contains(id));
  Keep(state.index.with_gang, id, exists && HasLiveGang(found->second.phase));
}

void ReindexAll(State& state) {
  state.index = {};
  for (const auto& [id, job] : state.jobs) Reindex(state, id);
}

}  // namespace llmctl::core
