// Lines for people. In a job both streams are files that the shim owns.
#pragma once

#include <functional>

#include "absl/strings/string_view.h"

namespace llmctl::trainer {

struct Log {
  // What happens: standard output.
  std::function<void(absl::string_view)> line;
  // What somebody should act on, though the run goes on: standard output and standard error.
  std::function<void(absl::string_view)> alarm;
};

}  // namespace llmctl::trainer
