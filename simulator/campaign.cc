#include "simulator/campaign.h"

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "common/base/check.h"
#include "common/base/instant.h"
#include "coordinator/core/event.h"
#include "simulator/describe.h"

namespace llmctl::simulator {
namespace {

constexpr size_t kEventKinds = std::variant_size_v<core::Event>;
constexpr size_t kViolationBytes = 1024;

// What a process leaves behind, in memory that the parent sees.
struct Share {
  uint64_t seed = 0;  // under way
  bool ended = false;
  std::atomic<uint64_t> failed_seed = 0;
  char violation[kViolationBytes] = {};
  uint64_t seeds = 0;
  int64_t actions = 0;
  ProbeCounts probes{};
  int64_t events[kEventKinds] = {};
  int nodes_least = 0, jobs_least = 0, fault_kinds_least = 0;
  int64_t events_least = 0;
};

// Anonymous memory that outlives a fork, in both.
class SharedShares {
 public:
  explicit SharedShares(int count) : bytes_(count * sizeof(Share)) {
    void* memory = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED) << "no memory for " << bytes_ << " bytes";
    shares_ = static_cast<Share*>(memory);
    for (int i = 0; i < count; ++i) new (&shares_[i]) Share();
  }
  ~SharedShares() { ::munmap(shares_, bytes_); }
  SharedShares(const SharedShares&) = delete;
  SharedShares& operator=(const SharedShares&) = delete;

  Share& operator[](int i) { return shares_[i]; }

 private:
  const size_t bytes_;
  Share* shares_ = nullptr;
};

void Keep(const Tally& tally, Share& share) {
  share.seeds = tally.seeds;
  share.actions = tally.actions;
  share.probes = tally.probes;
  for (size_t i = 0; i < tally.events.size(); ++i) share.events[i] = tally.events[i];
  share.nodes_least = tally.nodes_least;
  share.jobs_least = tally.jobs_least;
  share.fault_kinds_least = tally.fault_kinds_least;
  share.events_least = tally.events_least;
}

Tally ToTally(const Share& share) {
  Tally tally{.seeds = share.seeds,
              .actions = share.actions,
              .probes = share.probes,
              .events = std::vector<int64_t>(share.events, share.events + kEventKinds),
              .nodes_least = share.nodes_least,
              .jobs_least = share.jobs_least,
              .fault_kinds_least = share.fault_kinds_least,
              .events_least = share.events_least};
  return tally;
}

// Only lower seeds matter then.
bool HasFailedBefore(SharedShares& shares, int count, uint64_t seed) {
  for (int i = 0; i < count; ++i) {
    uint64_t failed = shares[i].failed_seed;
    if (failed != 0 && failed < seed) return true;
  }
  return false;
}

// Every `processes`-th seed, from first + number on, so that together they go through the seeds in order.
void RunShare(const CampaignOptions& options, int number, Instant end, SharedShares& shares) {
  Share& share = shares[number];
  Tally tally;
  for (uint64_t i = number; i < options.seeds_most; i += options.processes) {
    if (tally.seeds >= options.seeds_least && end < Now()) break;
    share.seed = options.first + i;
    if (HasFailedBefore(shares, options.processes, share.seed)) break;
    Outcome outcome = RunSeed({.seed = share.seed, .mutant = options.mutant});
    tally.Add(outcome);
    if (outcome.violation.empty()) continue;
    std::strncpy(share.violation, outcome.violation.c_str(), kViolationBytes - 1);
    share.failed_seed = share.seed;
    break;
  }
  Keep(tally, share);
  share.ended = true;
}

}  // namespace

void Tally::Add(const Outcome& outcome) {
  int64_t outcome_events = 0;
  events.resize(kEventKinds);
  for (size_t i = 0; i < outcome.events.size(); ++i) {
    events[i] += outcome.events[i];
    outcome_events += outcome.events[i];
  }
  for (size_t i = 0; i < kProbes; ++i) probes[i] += outcome.probes[i];
  actions += outcome.actions;
  bool first = seeds++ == 0;
  nodes_least = first ? outcome.nodes : std::min(nodes_least, outcome.nodes);
  jobs_least = first ? outcome.jobs : std::min(jobs_least, outcome.jobs);
  fault_kinds_least = first ? outcome.fault_kinds : std::min(fault_kinds_least, outcome.fault_kinds);
  events_least = first ? outcome_events : std::min(events_least, outcome_events);
}

void Tally::Add(const Tally& other) {
  if (other.seeds == 0) return;
  events.resize(kEventKinds);
  for (size_t i = 0; i < kEventKinds; ++i) events[i] += other.events[i];
  for (size_t i = 0; i < kProbes; ++i) probes[i] += other.probes[i];
  actions += other.actions;
  bool first = seeds == 0;
  seeds += other.seeds;
  nodes_least = first ? other.nodes_least : std::min(nodes_least, other.nodes_least);
  jobs_least = first ? other.jobs_least : std::min(jobs_least, other.jobs_least);
  fault_kinds_least = first ? other.fault_kinds_least : std::min(fault_kinds_least, other.fault_kinds_least);
  events_least = first ? other.events_least : std::min(events_least, other.events_least);
}

bool Tally::Qualifies() const {
  return nodes_least >= kNodesLeast && jobs_least >= kJobsLeast && fault_kinds_least >= kFaultKindsLeast &&
         events_least >= kEventsLeast;
}

CampaignResult RunCampaign(const CampaignOptions& options) {
  Instant begin = Now();
  SharedShares shares(options.processes);
  std::vector<pid_t> children;
  std::fflush(stdout);
  for (int i = 0; i < options.processes; ++i) {
    pid_t child = ::fork();
    CHECK_GE(child, 0) << "no process";
    if (child == 0) {
      std::signal(SIGABRT, SIG_DFL);
      RunShare(options, i, begin + options.time, shares);
      ::_exit(0);
    }
    children.push_back(child);
  }
  CampaignResult result;
  for (int i = 0; i < options.processes; ++i) {
    int status = 0;
    ::waitpid(children[i], &status, 0);
    const Share& share = shares[i];
    result.tally.Add(ToTally(share));
    uint64_t failed = share.ended ? share.failed_seed.load() : share.seed;
    if (failed == 0 || (result.failed_seed != 0 && result.failed_seed < failed)) continue;
    result.failed_seed = failed;
    result.violation = share.ended ? share.violation : "a CHECK of the program failed";
  }
  result.took = Now() - begin;
  return result;
}

std::string Describe(const CampaignResult& result) {
  const Tally& tally = result.tally;
  double seconds = absl::ToDoubleSeconds(result.took);
  std::string text = absl::StrFormat("%d schedules in %.1f s (%.0f a second), %d actions\n", tally.seeds, seconds,
                                     static_cast<double>(tally.seeds) / seconds, tally.actions);
  absl::StrAppendFormat(&text, "each with at least %d nodes, %d jobs, %d kinds of faults, %d events of the core\n",
                        tally.nodes_least, tally.jobs_least, tally.fault_kinds_least, tally.events_least);
  static constexpr const char* kTitles[] = {"faults", "people", "situations"};
  for (ProbeKind kind : {ProbeKind::kFault, ProbeKind::kUser, ProbeKind::kSituation}) {
    absl::StrAppend(&text, kTitles[static_cast<size_t>(kind)], "\n");
    for (size_t i = 0; i < kProbes; ++i) {
      if (KindOf(static_cast<Probe>(i)) != kind) continue;
      absl::StrAppendFormat(&text, "%12d  %s\n", tally.probes[i], ProbeName(static_cast<Probe>(i)));
    }
  }
  absl::StrAppend(&text, "events of the coordinators' core\n");
  for (size_t i = 0; i < tally.events.size(); ++i) {
    absl::StrAppendFormat(&text, "%12d  %s\n", tally.events[i], EventName(i));
  }
  return text;
}

}  // namespace llmctl::simulator
