#include "simulator/probes.h"

namespace llmctl::simulator {
namespace {

constexpr std::array<const char*, kProbes> kNames = {
    "link cut",
    "partition",
    "partition towards the coordinator",
    "partition towards the agent",
    "slow network",
    "network that repeats",
    "disk full",
    "disk slow",
    "agent's disk full",
    "disk dies inside a commit",
    "coordinator crash",
    "coordinator crash between persist and send",
    "coordinator pause",
    "second coordinator with a higher term",
    "agent crash",
    "agent crash inside a step",
    "agent pause",
    "trainer failure",
    "trainer pause",
    "trainer that does not die",
    "trainer that ignores SIGTERM",
    "shim killed",
    "host reboot",
    "host replaced by an empty one",
    "exit record lost",
    "two workers with one name",
    "clock jump",
    "submit",
    "submit twice at once",
    "cancel",
    "suspend",
    "resume",
    "delete",
    "cordon",
    "drain",
    "uncordon",
    "at the worst moment",
    "clock drift",
    "partition beyond the orphan timeout",
    "power loss",
    "message lost with its link",
    "message repeated",
    "message repeated behind later ones",
    "old link overtaken by a newer one",
    "commit failed",
    "commit slow",
    "commit refused by term",
    "unsynced write dropped",
    "unsynced write torn",
    "commit in doubt was kept",
    "commit in doubt was lost",
    "schedule on the real store",
    "coordinator crash loses steps",
    "coordinator pause beyond the lease",
    "agent pause beyond the lease",
    "second agent refused by the lock",
    "fence not written",
    "outbox not written",
    "lease expired",
    "worker refused",
    "agent gave up a silent link",
    "shim re-adopted by a new agent",
    "shim kept a message for an absent agent",
    "rank exited while the agent was away",
    "rank hangs in a collective",
    "orphans stopped",
    "trainers yield",
    "last checkpoint refused",
    "plan was stale",
    "rendezvous key asked for after its generation",
    "submission repeated with its key",
    "delete refused",
    "node drained",
    "job failed",
    "job succeeded",
};

}  // namespace

const char* ProbeName(Probe probe) { return kNames[static_cast<size_t>(probe)]; }

ProbeKind KindOf(Probe probe) {
  if (probe < Probe::kSubmit) return ProbeKind::kFault;
  return probe < Probe::kAtTheWorstMoment ? ProbeKind::kUser : ProbeKind::kSituation;
}

}  // namespace llmctl::simulator
