// A line as CCNet normalises it before it asks a language model (cc_net/text_normalizer.py, normalize() with its
// defaults): white space at both ends goes; letters become small; accents go (NFD without its marks of category Mn);
// decimal digits become 0; 33 marks of punctuation become ASCII's; control characters (U+0000..1F, U+007F..9F) go.
//
// The steps are taken in that order, each character by one look-up of what becomes of it; lines in which neighbours
// matter (a capital sigma, marks whose order NFD changes) are left to ICU. Properties are those of ICU's version of
// Unicode.
// Memory: 1 MB, once in a process.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace llmctl::data {

// Replaces what `out` holds. `line` is valid UTF-8. Safe from any thread.
void NormalizeLine(absl::string_view line, std::string& out);

}  // namespace llmctl::data
