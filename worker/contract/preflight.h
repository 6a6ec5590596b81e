// What `llm-trainer preflight` says of a host: one JSON object on standard output, and exit code 0 if it could test at
// all, fit or not.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace llmctl::contract {

struct PreflightCheck {
  std::string name;     // "matmul", "memory", "all-reduce", "disk"
  std::string outcome;  // "passed", "failed", "skipped"
  double seconds = 0;
  double value = 0;  // in `unit`; 0 if nothing was measured
  std::string unit;
  std::string detail;  // what was found against what was expected, or why it was skipped
  bool operator==(const PreflightCheck&) const = default;
};

struct Preflight {
  bool passed = false;
  std::string failure;  // name and detail of the first check that failed
  std::vector<PreflightCheck> checks;
  bool operator==(const Preflight&) const = default;
};

// Passed if no check failed.
Preflight Summarize(std::vector<PreflightCheck> checks);

std::string EncodePreflight(const Preflight& preflight);
absl::StatusOr<Preflight> DecodePreflight(absl::string_view json);

}  // namespace llmctl::contract
