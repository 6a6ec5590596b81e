// Targets of worker/data/dedup.
#pragma once

#include <vector>

#include "tests/fuzz/target.h"

namespace llmctl::fuzz {

std::vector<Target> DedupTargets();

}  // namespace llmctl::fuzz
