// Is this file a fastText model that can be asked for a language?
//
// The library reads a model without looking: on a file that ends early it never returns, on wrong sizes it writes where
// it should not, on wrong numbers it divides by zero, reads beyond its tables or throws while it predicts. Whatever
// passes here is loaded and predicts with none of that.
//
// Written after the format of fastText 0.9.2 (version 12; version 11 is read too), little-endian.
#pragma once

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace llmctl::data {

// Fails with the byte offset, what was expected there and what was found.
absl::Status CheckFastTextModel(absl::string_view bytes);

}  // namespace llmctl::data
