// Targets of worker/data/perplexity.
#pragma once

#include <vector>

#include "tests/fuzz/target.h"

namespace llmctl::fuzz {

std::vector<Target> PerplexityTargets();

}  // namespace llmctl::fuzz
