// One name for a language, whoever says it: BCP 47 in CLDR's canonical form, without a region, and without a script
// but one that is unusual for the language: "en", "zh" and "zh-Hant", "sr" and "sr-Latn", "no" (also for nb), "fil".
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace llmctl::data {

// What a detector says when it cannot tell. In "und-Cher" only the script was recognised.
inline constexpr absl::string_view kUnknownLanguage = "und";

// The label for what CLD2, fastText's models (lid.176, GlotLID, OpenLID) or a person call a language: "iw", "zh-TW",
// "eng_Latn". What is no language tag at all becomes "und".
std::string LanguageLabel(absl::string_view name);

// Whether `label` is `range` or a variety of it: "zh-Hant" is in "zh" (RFC 4647, basic filtering).
bool IsLanguageIn(absl::string_view label, absl::string_view range);

}  // namespace llmctl::data
