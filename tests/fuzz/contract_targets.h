// Targets of worker/contract.
#pragma once

#include <vector>

#include "tests/fuzz/target.h"

namespace llmctl::fuzz {

std::vector<Target> ContractTargets();

}  // namespace llmctl::fuzz
