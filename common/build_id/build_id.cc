#include "common/build_id/build_id.h"

#include <cstring>

namespace llmctl {

// From the generated file: alone there, so that a new commit recompiles a line and relinks the programs.
extern const char kBuildIdSlot[];

std::string BuildId() { return std::strchr(kBuildIdSlot, '=') + 1; }

}  // namespace llmctl
