// From the views of all ranks to what the core is told. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/diagnosis/rank_view.h"
#include "coordinator/runtime/hang_watch.h"

namespace llmctl::runtime {

// Nothing: a rank has got on since the suspicion arose.
std::optional<std::string> ConfirmHang(const HangWatch::Suspicion& suspicion,
                                       const std::vector<diagnosis::RankView>& views, int world_size);

}  // namespace llmctl::runtime
