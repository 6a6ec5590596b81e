// What people write beside a change they ask for.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace llmctl::rpc {

// It is shown in tables, and kept with the job or node.
inline constexpr size_t kReasonBytesMost = 1000;

inline absl::Status CheckReason(const std::string& reason) {
  if (reason.size() <= kReasonBytesMost) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("reason: ", reason.size(), " bytes, at most ", kReasonBytesMost, " are taken"));
}

}  // namespace llmctl::rpc
