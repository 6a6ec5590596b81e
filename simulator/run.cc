#include "simulator/run.h"

#include <memory>

#include "simulator/world.h"

namespace llmctl::simulator {

Outcome RunSeed(const RunOptions& options) {
  auto world = std::make_unique<World>(options);
  return world->Run();
}

}  // namespace llmctl::simulator
