// Fuzz targets: every parser of bytes that a disk, a peer or a person may have damaged.
//
// A target may refuse its input in any way but a crash, a hang or a sanitizer's report; what it accepts must hold
// what the parser promises (round trips, ranges inside the input), which the targets check. They run in two ways:
// mutation_test.cc feeds each a few thousand seeded mutations of its seeds in every ordinary test run; a build with
// clang and LLM_FUZZ=ON makes a libFuzzer program of each, which searches by coverage for as long as one likes.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace llmctl::fuzz {

struct Target {
  std::string name;
  void (*run)(absl::string_view bytes);
  std::vector<std::string> seeds;  // accepted, or nearly
};

// All that this build has.
std::vector<Target> AllTargets();

// Those that need protobuf and yaml-cpp; empty in a build without them.
std::vector<Target> SpecTargets();

}  // namespace llmctl::fuzz
