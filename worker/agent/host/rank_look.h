// What a rank is doing, from the files in its shim's directory and /proc: nothing of it asks the rank.
//
// Thread-safe.
#pragma once

#include <string>

#include "absl/time/time.h"

#include "common/diagnosis/rank_view.h"
#include "worker/contract/phase_page.h"

namespace llmctl::agent {

// What is known; fields stay empty where a file is missing. `now` is monotonic.
diagnosis::RankView LookAtRank(const std::string& directory, absl::Duration now);

// Time that the rank has worked and not waited for others: what a slow host or device lengthens.
absl::Duration BusyTime(const contract::PhaseRecord& record);

}  // namespace llmctl::agent
