// From the views of all ranks to what the core is told: the suspects, and the text. Pure.
#pragma once

#include <optional>
#include <vector>

#include "common/diagnosis/rank_view.h"
#include "common/diagnosis/verdict.h"
#include "coordinator/runtime/hang_watch.h"

namespace llmctl::runtime {

// Nothing: a rank has got on since the suspicion arose, with a step, or with what it did beside its steps.
std::optional<diagnosis::Verdict> ConfirmHang(const HangWatch::Suspicion& suspicion,
                                              const std::vector<diagnosis::RankView>& views, int world_size);

}  // namespace llmctl::runtime
