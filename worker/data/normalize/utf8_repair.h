// Invalid UTF-8 becomes U+FFFD, as the WHATWG encoding standard does: one for each maximal part of a sequence.
#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace llmctl::data {

// Offset of the first byte that is not UTF-8, or npos.
size_t FindInvalidUtf8(absl::string_view bytes);

// Replaces what is not UTF-8 by U+FFFD; returns how many sequences were replaced.
int64_t ReplaceInvalidUtf8(std::string& text);

}  // namespace llmctl::data
