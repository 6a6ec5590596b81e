#include "tests/fuzz/target.h"

namespace llmctl::fuzz {

std::vector<Target> SpecTargets() { return {}; }

}  // namespace llmctl::fuzz
