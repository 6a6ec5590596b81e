// Targets of worker/data/language.
#pragma once

#include <vector>

#include "tests/fuzz/target.h"

namespace llmctl::fuzz {

std::vector<Target> LanguageTargets();

}  // namespace llmctl::fuzz
