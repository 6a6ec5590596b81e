// One line for the trace.
#pragma once

#include <cstddef>
#include <string>

#include "coordinator/core/event.h"

namespace llmctl::simulator {

std::string Describe(const core::Event& event);
// Of the event's kind, by its place among the alternatives.
const char* EventName(size_t index);

}  // namespace llmctl::simulator
