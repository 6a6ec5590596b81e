// Matching against the patterns of this program: each is compiled once, which costs a hundred times what a match does.
//
// Not for patterns from outside: what has been compiled is kept.
#pragma once

#include "absl/strings/string_view.h"

namespace llmctl::spec {

// Whether the whole of `text` matches. `pattern` is RE2's syntax, and valid. Thread-safe.
bool Matches(absl::string_view text, absl::string_view pattern);

}  // namespace llmctl::spec
