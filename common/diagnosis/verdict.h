// Which rank does a gang wait for?
//
// Ranks of a group call the same collectives in the same order. So of a gang that stands still, those that wait in
// the newest collective do not hold it up: the rank to look at is the one that never entered it, and its phase says
// what it does instead. If all have entered it, a process that is stopped or gone is to blame, or else the transport.
// If ranks are in different calls under the same number, their programs have diverged, and no waiting will help.
// If none is in a collective, the one that has been longest where it is.
//
// Pure.
#pragma once

#include <string>
#include <vector>

#include "common/diagnosis/rank_view.h"

namespace llmctl::diagnosis {

struct Verdict {
  // One sentence without a full stop: "rank 3 (host-1) never entered all_reduce #5127 grad.bucket layers.7.mlp, which
  // 3 ranks have waited in for 31.2 s; last seen in the data loader 31.4 s ago".
  std::string text;
  std::vector<int> suspects;  // ranks, ascending; empty: none stands out
};

// `views` of the ranks of one generation, in any order; `world_size` tells whether some are missing.
Verdict FindCulprit(const std::vector<RankView>& views, int world_size);

// "all_reduce #5127 grad.bucket layers.7.mlp"
std::string CollectiveText(const CollectivePosition& position);

}  // namespace llmctl::diagnosis
