// One line for the trace.
#pragma once

#include <string>

#include "coordinator/core/event.h"

namespace llmctl::simulator {

std::string Describe(const core::Event& event);

}  // namespace llmctl::simulator
