// From the text of a document as it was read to the text that is trained on.
//
// Text from the world is dirty as a rule, so nothing here fails: a leading byte order mark goes, CR LF and CR become
// LF, control characters other than tab and newline go, the rest is put into a Unicode normalisation form, and white
// space is tidied, each as the settings say. What was changed is counted.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

#include "worker/data/normalize/normalize_settings.h"
#include "worker/data/normalize/repairs.h"

namespace llmctl::data {

// Constant after construction: any number of threads may share one.
class TextNormalizer {
 public:
  explicit TextNormalizer(const NormalizeSettings& settings) : settings_(settings) {}

  // `text` is valid UTF-8. Gives `text` itself where nothing is to be done, which is the rule, and otherwise a view
  // of `scratch`, which must not hold `text`. Normalising the result again changes nothing.
  absl::string_view Normalize(absl::string_view text, std::string& scratch, Repairs& repairs) const;

 private:
  const NormalizeSettings settings_;
};

// Whether there is anything but ASCII white space, U+00A0, U+3000 and U+FEFF.
bool HasContent(absl::string_view text);

}  // namespace llmctl::data
