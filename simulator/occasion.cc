#include "simulator/occasion.h"

#include <variant>

namespace llmctl::simulator {

Occasion OccasionOf(const core::Event& event) {
  return std::visit(
      [](const auto& e) {
        Occasion occasion;
        if constexpr (requires { e.generation.job; }) occasion.job = e.generation.job;
        if constexpr (requires { JobId(e.job); }) occasion.job = e.job;
        if constexpr (requires { NodeId(e.node); }) occasion.node = e.node;
        if constexpr (requires { e.node.id; }) occasion.node = e.node.id;
        return occasion;
      },
      event);
}

}  // namespace llmctl::simulator
