// RankView: what can be seen of one rank from outside, by its host's agent at some moment.
//
// The coordinator compares the views of all ranks to say which one a gang waits for; an evidence bundle keeps them as
// JSON, and llmctl compares them again. Ages are in seconds of the rank's own host.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace llmctl::diagnosis {

// Where a rank is in one of its groups: the newest collective that it has entered.
struct CollectivePosition {
  std::string group;      // "data", ...
  int64_t number = 0;     // within the group; the same call has the same number on all its ranks
  std::string operation;  // "all_reduce", ...
  std::string site;       // "grad.bucket layers.7.mlp"
  int64_t count = 0;      // elements
  std::string state;      // "entered", "done", "failed"
  double seconds = 0;     // entered: since then; failed: how long it waited; done: since it returned
  bool operator==(const CollectivePosition&) const = default;
};

struct RankView {
  int rank = 0;
  std::string node;
  int64_t pid = 0;
  // Letter of /proc for the main thread (R, S, D, T, t, Z); empty: there is no process.
  std::string process;
  std::string activity;  // "training", "checkpoint", ...; empty: the trainer has not said
  std::string phase;     // "data", "collective", ...
  std::string where;     // the phase for a person: "in the data loader"
  double phase_seconds = 0;
  int64_t step = 0;           // done
  double step_seconds = 0;    // since the newest step was done
  double process_seconds = 0;  // since the trainer began
  std::vector<CollectivePosition> collectives;
  std::string exit;  // how it ended, for a person; empty: it has not, or nobody knows
  bool operator==(const RankView&) const = default;
};

// One JSON object on one line.
std::string EncodeRankView(const RankView& view);
absl::StatusOr<RankView> DecodeRankView(absl::string_view json);

}  // namespace llmctl::diagnosis
