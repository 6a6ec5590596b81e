// Targets of worker/data and worker/engine/checkpoint.
#pragma once

#include <vector>

#include "tests/fuzz/target.h"

namespace llmctl::fuzz {

std::vector<Target> DataTargets();

}  // namespace llmctl::fuzz
