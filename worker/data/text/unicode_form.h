// Unicode normalisation forms, by ICU: of documents, and what tokenizer.json means by {"type": "NFC"}.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace llmctl::data {

enum class UnicodeForm {
  kNone,  // any text is in it
  kNfc,   // canonical: what looks the same is the same
  kNfkc,  // compatibility too: ligatures, full-width letters and superscripts become plain letters and digits
};

bool IsInForm(UnicodeForm form, absl::string_view text);

// Bytes that are not UTF-8 become U+FFFD, but for kNone.
std::string ToForm(UnicodeForm form, absl::string_view text);

}  // namespace llmctl::data
