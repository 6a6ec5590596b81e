// What is seen of ranks, on the wire. Pure functions.
#pragma once

#include "absl/time/time.h"

#include "common/base/ids.h"
#include "common/diagnosis/rank_view.h"
#include "worker/contract/phase_page.h"

namespace llmctl::v1 {
class RankPulse;
class RankView;
}  // namespace llmctl::v1

namespace llmctl::agent {

struct PulseSource {
  GenerationId generation;
  int rank = 0;
  contract::PhaseRecord record;
  absl::Duration busy;
};
// `now` is monotonic.
void Fill(const PulseSource& source, absl::Duration now, v1::RankPulse* out);
void Fill(const diagnosis::RankView& view, v1::RankView* out);

}  // namespace llmctl::agent
