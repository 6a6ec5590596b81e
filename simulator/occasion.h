// What is happening at the moment when something goes wrong or somebody intervenes.
#pragma once

#include "common/base/ids.h"
#include "coordinator/core/event.h"

namespace llmctl::simulator {

struct Occasion {
  JobId job;    // may be empty
  NodeId node;  // may be empty
};

Occasion OccasionOf(const core::Event& event);

}  // namespace llmctl::simulator
