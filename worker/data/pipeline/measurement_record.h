// The numbers of the quality filters as bytes, so that they can be judged by other thresholds later.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "worker/data/filters/filter_stats.h"

namespace llmctl::data {

void EncodeMeasurements(const FilterStats& stats, std::string& out);
// DataLoss if it is something else.
absl::StatusOr<FilterStats> DecodeMeasurements(absl::string_view bytes);

}  // namespace llmctl::data
