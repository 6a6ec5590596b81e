// From a placement to running ranks: check that the hosts see the same files, then start everywhere.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "common/base/check.h"
#include "coordinator/core/deadlines.h"
#include "coordinator/core/failure_class.h"
#include "coordinator/core/gang.h"

namespace llmctl::core {
namespace {

// "2 ranks on node-a, 2 ranks on node-b"
std::string DescribeHosts(const Attempt& attempt) {
  std::vector<std::string> parts;
  for (const NodeId& host : HostsOf(attempt)) {
    int count = 0;
    for (const RankState& rank : attempt.ranks) count += rank.node == host;
    const char* noun = count == 1 ? " rank on " : " ranks on ";
    parts.push_back(absl::StrCat(count, noun, host.value()));
  }
  return absl::StrJoin(parts, ", ");
}

// Of the round that goes on.
std::string NonceOf(State& state, const Job& job) {
  return absl::StrCat(job.id.value(), "-g", job.attempt->generation, "-", state.checks[job.id].round);
}

void SendProbe(Turn& turn, const Job& job, const NodeId& node) {
  ProbeHost probe;
  probe.node = node;
  probe.generation = CurrentGeneration(job);
  probe.checkpoint_directory = job.requirements.checkpoint_directory;
  probe.dataset = job.requirements.dataset;
  probe.nonce = NonceOf(turn.state, job);
  probe.write = node == job.attempt->ranks.front().node;
  turn.SendToHost(node, std::move(probe));
}

void SendStart(Turn& turn, const Job& job, const NodeId& node) {
  StartRanks start;
  start.node = node;
  start.generation = CurrentGeneration(job);
  for (const RankState& rank : job.attempt->ranks) start.slots.push_back({rank.node, rank.device});
  start.spec = job.spec;
  start.micro_batch_size = job.micro_batch_size;
  start.checkpoints.assign(job.checkpoints.rbegin(), job.checkpoints.rend());
  start.trainer_digest = job.attempt->trainer_digest;
  start.search_checkpoints = job.attempt->search_checkpoints;
  turn.SendToHost(node, std::move(start));
}

// An agent that does not know of the search would let the job begin from a checkpoint that is older, or gone.
std::string CannotSearch(const State& state, const Attempt& attempt) {
  const NodeId& first = attempt.ranks.front().node;  // its rank 0 reads the checkpoints
  auto node = state.nodes.find(first);
  if (!attempt.search_checkpoints || node == state.nodes.end() ||
      node->second.capabilities.contains(kSearchesCheckpoints)) {
    return "";
  }
  return absl::StrCat("the store was restored from a backup, and the agent of host ", first.value(), " (build ",
                      node->second.build_id, ") cannot look for checkpoints made since; upgrade llm-worker there");
}

void RequestRanks(Turn& turn, Job& job) {
  Attempt& attempt = *job.attempt;
  if (std::string text = CannotSearch(turn.state, attempt); !text.empty()) {
    FailGang(turn, job, SeenByCore("agent-too-old", FailureClass::kInfrastructure), std::move(text));
    return;
  }
  attempt.ranks_requested = true;
  attempt.unreleased = HostsOf(attempt);
  std::string from = attempt.start_checkpoint_step == 0
                         ? "from the beginning"
                         : absl::StrCat("from the checkpoint of step ", attempt.start_checkpoint_step);
  turn.Log(job, "starting", absl::StrCat("The hosts have passed their checks; ranks start ", from, "."));
  turn.Disarm(job.id);
  turn.Arm({Timer::Purpose::kStart, job.id, attempt.generation}, kStartDeadline);
  for (const NodeId& host : attempt.unreleased) SendStart(turn, job, host);
}

HostLife LifeOf(const State& state, const NodeId& node) {
  const Node& known = state.nodes.at(node);
  return {.boot_id = known.boot_id, .incarnation = known.incarnation};
}

void RememberProvenHosts(State& state, const Job& job) {
  std::map<NodeId, HostLife>& proven = state.proven_hosts[job.id];
  proven.clear();
  for (const NodeId& host : HostsOf(*job.attempt)) proven[host] = LifeOf(state, host);
}

// Whether the checks would only find again what the attempt before has shown by running. Said once: a gang that then
// does not get as far is checked the next time.
bool TakeProof(State& state, const Job& job) {
  auto found = state.proven_hosts.find(job.id);
  if (found == state.proven_hosts.end()) return false;
  const std::map<NodeId, HostLife> proven = std::move(found->second);
  state.proven_hosts.erase(found);
  std::vector<NodeId> hosts = HostsOf(*job.attempt);
  return std::all_of(hosts.begin(), hosts.end(), [&](const NodeId& host) {
    auto life = proven.find(host);
    return life != proven.end() && life->second == LifeOf(state, host);
  });
}

// The hosts that do not see the dataset that the first one sees, for a person; empty when all agree.
std::string DatasetDisagreement(const Job& job, const std::map<NodeId, std::string>& digests) {
  const NodeId& first = job.attempt->ranks.front().node;
  for (const auto& [node, digest] : digests) {
    if (digest == digests.at(first)) continue;
    return absl::StrCat("hosts ", first.value(), " and ", node.value(), " do not have the same dataset at ",
                        job.requirements.dataset, ": the manifest on ", first.value(), " has digest ",
                        digests.at(first), ", the one on ", node.value(), " has ", digest,
                        "; copy the same dataset to both, or mount a shared file system");
  }
  return "";
}

std::string ProbeFailure(const Job& job, const ProbeAnswered& answer) {
  const NodeId& first = job.attempt->ranks.front().node;
  if (answer.node == first) return absl::StrCat("host ", first.value(), " cannot run the job: ", answer.error);
  return absl::StrCat("hosts ", first.value(), " and ", answer.node.value(),
                      " do not share the checkpoint directory ", job.requirements.checkpoint_directory,
                      " or the dataset ", job.requirements.dataset, ": ", answer.node.value(), " says: ", answer.error,
                      "; mount a shared file system at the same path on both");
}

// A host has not passed its check.
void DoubtOrFail(Turn& turn, Job& job, const ProbeAnswered& answer) {
  GangCheck& check = turn.state.checks[job.id];
  const NodeId& writer = job.attempt->ranks.front().node;
  bool reader = answer.node != writer;
  if (reader && check.round + 1 < kProbeRounds) {
    ++check.round;
    check.digests.clear();
    SendProbe(turn, job, writer);
    return;
  }
  if (answer.infrastructure) {
    FailGang(turn, job, SeenByCore("host-check-storage", FailureClass::kInfrastructure),
             absl::StrCat("host ", answer.node.value(), " cannot check the job's files: ", answer.error));
    return;
  }
  FailGang(turn, job, SeenByCore("host-check", FailureClass::kUser, Outlook::kNever), ProbeFailure(job, answer));
}

// So that its logs can be found when another attempt has taken its place.
void KeepPastAttempt(Job& job) {
  if (!job.attempt->ranks_requested) return;
  PastAttempt past{.number = job.attempt->number, .generation = job.attempt->generation, .nodes = {}};
  for (const RankState& rank : job.attempt->ranks) past.nodes.push_back(rank.node);
  job.past_attempts.push_back(std::move(past));
  if (job.past_attempts.size() > kPastAttemptsMost) job.past_attempts.erase(job.past_attempts.begin());
}

}  // namespace

GenerationId CurrentGeneration(const Job& job) {
  CHECK(job.attempt.has_value()) << job.id << " has never been started";
  return {job.id, job.attempt->number, job.attempt->generation};
}

Job* FindLiveGang(State& state, const GenerationId& generation) {
  auto found = state.jobs.find(generation.job);
  if (found == state.jobs.end()) return nullptr;
  Job& job = found->second;
  if (!HasLiveGang(job.phase) || CurrentGeneration(job) != generation) return nullptr;
  return &job;
}

std::vector<NodeId> HostsOf(const Attempt& attempt) {
  std::vector<NodeId> hosts;
  std::set<NodeId> seen;
  for (const RankState& rank : attempt.ranks) {
    if (seen.insert(rank.node).second) hosts.push_back(rank.node);
  }
  return hosts;
}

bool MayHaveProcesses(const Attempt& attempt, const NodeId& node) {
  return std::find(attempt.unreleased.begin(), attempt.unreleased.end(), node) != attempt.unreleased.end();
}

void BeginGang(Turn& turn, Job& job, const std::vector<Slot>& slots) {
  CHECK(job.phase == JobPhase::kQueued) << job.id << " is " << JobPhaseName(job.phase);
  if (job.attempt) KeepPastAttempt(job);
  Attempt attempt;
  attempt.number = ++job.last_attempt;
  // Until one is committed that this store knows of.
  attempt.search_checkpoints = job.generation_floor > (job.checkpoints.empty() ? 0 : job.checkpoints.back().generation);
  job.last_generation = std::max(job.last_generation, job.generation_floor) + 1;
  attempt.generation = job.last_generation;
  attempt.trainer_digest = turn.state.nodes.at(slots.front().node).trainer_digest;
  attempt.start_time = turn.now.wall;
  attempt.start_checkpoint_step = job.checkpoints.empty() ? 0 : job.checkpoints.back().step;
  for (const Slot& slot : slots) {
    RankState rank;
    rank.node = slot.node;
    rank.device = slot.device;
    attempt.ranks.push_back(std::move(rank));
  }
  job.attempt = std::move(attempt);
  job.phase = JobPhase::kStarting;
  job.reason = "the hosts are being checked";
  for (const Slot& slot : slots) {
    CHECK(TakesRanks(turn.state.nodes.at(slot.node))) << slot.node << " takes no ranks and was placed for " << job.id;
    bool free = turn.state.device_owner.emplace(std::pair(slot.node, slot.device), CurrentGeneration(job)).second;
    CHECK(free) << slot.node << " device " << slot.device << " is owned by "
                << turn.state.device_owner.at({slot.node, slot.device}) << " and placed for " << job.id;
  }
  turn.Log(job, "placed", absl::StrCat("Attempt ", job.last_attempt, ": ", DescribeHosts(*job.attempt), "."));
  if (TakeProof(turn.state, job)) {
    RequestRanks(turn, job);
    return;
  }
  turn.Disarm(job.id);
  turn.Arm({Timer::Purpose::kProbe, job.id, job.attempt->generation}, kProbeDeadline);
  // The others follow when the first has written what they are to find.
  SendProbe(turn, job, slots.front().node);
}

void RepeatStart(Turn& turn, const Job& job, const NodeId& node) {
  if (job.attempt->ranks_requested) {
    SendStart(turn, job, node);
    return;
  }
  const std::map<NodeId, std::string>& answers = turn.state.checks[job.id].digests;
  const NodeId& first = job.attempt->ranks.front().node;
  if (!answers.contains(node) && (node == first || answers.contains(first))) SendProbe(turn, job, node);
}

void OnProbeAnswered(Turn& turn, const ProbeAnswered& event) {
  Job* job = FindLiveGang(turn.state, event.generation);
  if (job == nullptr || job->phase != JobPhase::kStarting || job->attempt->ranks_requested) return;
  std::vector<NodeId> hosts = HostsOf(*job->attempt);
  if (std::find(hosts.begin(), hosts.end(), event.node) == hosts.end()) return;
  if (event.nonce != NonceOf(turn.state, *job)) return;  // of an earlier round
  if (!event.ok) {
    DoubtOrFail(turn, *job, event);
    return;
  }
  std::map<NodeId, std::string>& answers = turn.state.checks[job->id].digests;
  answers[event.node] = event.dataset_digest;
  if (!answers.contains(hosts.front())) return;
  if (std::string text = DatasetDisagreement(*job, answers); !text.empty()) {
    FailGang(turn, *job, SeenByCore("datasets-differ", FailureClass::kUser, Outlook::kNever), std::move(text));
    return;
  }
  if (answers.size() == hosts.size()) {
    RequestRanks(turn, *job);
  } else if (event.node == hosts.front()) {
    for (const NodeId& host : hosts) {
      if (!answers.contains(host)) SendProbe(turn, *job, host);
    }
  }
}

void MarkRunningIfReady(Turn& turn, Job& job) {
  if (job.phase != JobPhase::kStarting) return;
  for (const RankState& rank : job.attempt->ranks) {
    bool done = rank.phase == RankPhase::kExited && rank.exit->signal == 0 && rank.exit->exit_code == 0;
    if (rank.phase != RankPhase::kRunning && !done) return;
  }
  job.phase = JobPhase::kRunning;
  job.reason.clear();
  if (job.start_time == absl::InfinitePast()) job.start_time = turn.now.wall;
  turn.state.run_time_since[job.id] = turn.now.monotonic;
  RememberProvenHosts(turn.state, job);
  turn.Disarm(job.id);
  ArmTimeLimit(turn, job);
  size_t ranks = job.attempt->ranks.size();
  turn.Log(job, "running", ranks == 1 ? "The rank is ready." : absl::StrCat("All ", ranks, " ranks are ready."));
}

void ArmTimeLimit(Turn& turn, const Job& job) {
  if (job.requirements.time_limit == absl::InfiniteDuration()) return;
  absl::Duration left = std::max(job.requirements.time_limit - job.run_time, absl::ZeroDuration());
  turn.Arm({Timer::Purpose::kTimeLimit, job.id, job.attempt->generation}, left);
}

}  // namespace llmctl::core
