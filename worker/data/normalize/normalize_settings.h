// What is done to the characters of a document, before anything is measured on it.
#pragma once

#include "worker/data/text/unicode_form.h"

namespace llmctl::data {

enum class ControlPolicy { kRemove, kKeep };

enum class NewlinePolicy {
  kLineFeed,  // CR LF and CR become LF
  kKeep,
};

enum class WhitespacePolicy {
  kKeep,
  kTrim,      // none at the start and end of the text
  kCollapse,  // also: a run within a line is one space, none at a line's end, at most one empty line in a row
};

struct NormalizeSettings {
  UnicodeForm form = UnicodeForm::kNfc;
  ControlPolicy controls = ControlPolicy::kRemove;
  NewlinePolicy newlines = NewlinePolicy::kLineFeed;
  WhitespacePolicy whitespace = WhitespacePolicy::kKeep;

  bool operator==(const NormalizeSettings&) const = default;
};

}  // namespace llmctl::data
