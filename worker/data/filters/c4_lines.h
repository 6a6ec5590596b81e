// C4's rules for lines: which lines of a text stay, and what they are without citation marks.
#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

#include "worker/data/filters/filter_settings.h"
#include "worker/data/filters/filter_stats.h"
#include "worker/data/text/word_reader.h"

namespace llmctl::data {

enum class Depth {
  kVerdict,  // only what the verdict needs: stops where it is certain that the document goes
  kNumbers,  // all numbers
};

// Puts the lines that stay into `rewritten`, each ending where the next begins with LF. Under Depth::kVerdict sentences
// are not counted beyond the threshold.
C4Stats RewriteLines(absl::string_view text, const C4Settings& settings, Depth depth, WordReader& reader,
                     std::string& rewritten);

}  // namespace llmctl::data
