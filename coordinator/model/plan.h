// Plan: who runs where, as placement proposes it and the core disposes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/ids.h"

namespace llmctl {

struct Slot {
  NodeId node;
  int device = 0;
  bool operator==(const Slot&) const = default;
};

// All ranks of one job; slot i is rank i.
struct GangPlacement {
  JobId job;
  std::vector<Slot> slots;
};

// Why a job that wants to run does not, for a person.
struct Unplaced {
  JobId job;
  std::string reason;
};

struct Plan {
  int64_t revision = 0;  // of the state that it was made from
  // Which jobs were considered, and at which count of State::room.
  bool whole_queue = true;
  int64_t room = 0;
  std::vector<GangPlacement> gangs;
  std::vector<Unplaced> unplaced;
};

}  // namespace llmctl
