// Numbers, durations and times as people read them.
#pragma once

#include <cstdint>
#include <string>

#include "absl/time/time.h"

namespace llmctl::client {

// 999, 1.2k, 34.5M
std::string HumanCount(double count);

// 0.4s, 12s, 3m05s, 2h07m, 4d03h
std::string HumanDuration(absl::Duration duration);

// RFC 3339 in UTC: 2026-05-01T09:30:00Z
std::string FormatTime(int64_t unix_seconds);

// Four decimals; "-" for what is not a number.
std::string FormatLoss(double loss);

}  // namespace llmctl::client
