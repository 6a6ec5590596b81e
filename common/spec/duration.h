// Durations as a specification writes them: whole numbers with units, "90s", "1h30m", "500ms".
//
// A subset of what absl::ParseDuration reads, so whoever takes over a checked specification may use that.
#pragma once

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace llmctl::spec {

inline constexpr char kDurationForm[] = "a duration above zero such as 90s, 10m or 1h30m";

// InvalidArgument unless `text` is a duration above zero and at most ten years, in units h, m, s and ms.
absl::StatusOr<absl::Duration> ParseDuration(absl::string_view text);

}  // namespace llmctl::spec
