// Where in a record a field lies: names with dots between, as "meta.text". A dot or backslash that belongs to a name
// has a backslash before it.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace llmctl::data {

// What is wrong with a path; empty: nothing.
std::string FieldPathFault(absl::string_view path);

// The names of a path with nothing wrong.
std::vector<std::string> SplitFieldPath(absl::string_view path);

}  // namespace llmctl::data
