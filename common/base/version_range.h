// Versions of a protocol that one side speaks, and which one two sides should use. A protocol has a version so that
// programs of two releases can meet: during an upgrade they always do.
#pragma once

#include <algorithm>
#include <optional>

namespace llmctl {

struct VersionRange {
  int oldest = 0;
  int newest = 0;
};

// The newest version that both speak; nothing if there is none.
constexpr std::optional<int> CommonVersion(VersionRange a, VersionRange b) {
  int version = std::min(a.newest, b.newest);
  return version >= std::max(a.oldest, b.oldest) ? std::optional<int>(version) : std::nullopt;
}

}  // namespace llmctl
