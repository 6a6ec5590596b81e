// "Did you mean ...?": the valid name that a misspelt one was probably meant to be.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace llmctl::spec {

// The candidate with the fewest edits from `name`, letter case, '_' and '-' left aside ("hidden_size" is
// "hiddenSize"); none if even that differs in more than about a third of its letters.
std::optional<std::string> NearestName(absl::string_view name, const std::vector<std::string>& candidates);

}  // namespace llmctl::spec
