// Targets of worker/data/read: compressed files and Parquet.
#pragma once

#include <vector>

#include "tests/fuzz/target.h"

namespace llmctl::fuzz {

std::vector<Target> ReadTargets();

}  // namespace llmctl::fuzz
