// Targets of worker/data/pii.
#pragma once

#include <vector>

#include "tests/fuzz/target.h"

namespace llmctl::fuzz {

std::vector<Target> PiiTargets();

}  // namespace llmctl::fuzz
