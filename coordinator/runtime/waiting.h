// What waits for an answer until a deadline: maps from a request's id to a struct with a monotonic `deadline`.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "absl/time/time.h"

#include "common/base/instant.h"

namespace llmctl::runtime {

// Nothing could arrive for so long.
template <typename Pending>
void ExtendDeadlines(std::map<int64_t, Pending>& waiting, absl::Duration stall) {
  for (auto& [request, pending] : waiting) pending.deadline += stall;
}

// Those whose deadline has passed, in the order in which they began to wait.
template <typename Pending>
std::vector<Pending> TakeLate(std::map<int64_t, Pending>& waiting, Instant now) {
  std::vector<Pending> late;
  for (auto it = waiting.begin(); it != waiting.end();) {
    if (it->second.deadline > now.monotonic) {
      ++it;
      continue;
    }
    late.push_back(std::move(it->second));
    it = waiting.erase(it);
  }
  return late;
}

}  // namespace llmctl::runtime
