// Seeded damage of the kinds that disks, networks and people do.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

#include "common/base/rng.h"

namespace llmctl::fuzz {

// One to eight changes: bits flipped, bytes set to telling values, pieces cut, doubled, swapped in or inserted, the
// end cut off.
std::string Mutate(absl::string_view seed, SeededRng& rng);

}  // namespace llmctl::fuzz
