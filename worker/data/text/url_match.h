// Whether spaCy takes a piece of text for an address of the web, of a file or of a mailbox: then it stays one word.
#pragma once

#include "absl/strings/string_view.h"

namespace llmctl::data {

// `text` is valid UTF-8 without white space. The same language as the regular expression that spaCy matches (after
// D. Perini's, https://gist.github.com/dperini/729294), in one pass per '@': linear however odd the text.
bool LooksLikeUrl(absl::string_view text);

}  // namespace llmctl::data
