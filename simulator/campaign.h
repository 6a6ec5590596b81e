// Many seeds, on several processors: a process each, so that nothing is shared and a failed CHECK names its seed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"

#include "simulator/run.h"

namespace llmctl::simulator {

struct CampaignOptions {
  uint64_t first = 1;
  uint64_t seeds_most = 1;
  // Ends earlier when so much time has passed and each process has run this many at least.
  absl::Duration time = absl::InfiniteDuration();
  uint64_t seeds_least = 0;
  int processes = 1;
  Mutant mutant = Mutant::kNone;
};

// What a set of schedules was made of.
struct Tally {
  uint64_t seeds = 0;
  int64_t actions = 0;
  ProbeCounts probes{};
  std::vector<int64_t> events;
  // The least that any schedule had.
  int nodes_least = 0;
  int jobs_least = 0;
  int fault_kinds_least = 0;
  int64_t events_least = 0;

  void Add(const Outcome& outcome);
  void Add(const Tally& other);
  // Every schedule had what a schedule must have.
  bool Qualifies() const;
};

struct CampaignResult {
  Tally tally;
  uint64_t failed_seed = 0;  // the lowest that was found; 0: none
  std::string violation;
  absl::Duration took;
};

CampaignResult RunCampaign(const CampaignOptions& options);

// The histogram, a line for each probe and each kind of event.
std::string Describe(const CampaignResult& result);

}  // namespace llmctl::simulator
