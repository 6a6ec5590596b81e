// Unicode normalisation form C, by ICU: of documents, and what tokenizer.json means by {"type": "NFC"}.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace llmctl::data {

bool IsNfc(absl::string_view text);

// Bytes that are not UTF-8 become U+FFFD.
std::string ToNfc(absl::string_view text);

}  // namespace llmctl::data
