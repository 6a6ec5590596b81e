// A text by 128 bits: equal hashes are taken for equal texts.
//
// Among 10^12 texts some two differ with the same hash with a probability of 1.5e-15 (n^2 / 2^129), less than that of a
// machine that reads its memory wrong.
#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"

namespace llmctl::data {

struct TextHash {
  uint64_t high;
  uint64_t low;
};

// XXH3, 128 bits; the same on every machine and for ever.
TextHash HashText(absl::string_view text);

}  // namespace llmctl::data
