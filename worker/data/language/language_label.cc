#include "worker/data/language/language_label.h"

#include <algorithm>

#include <unicode/locid.h>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace llmctl::data {
namespace {

constexpr size_t kNameBytesMax = 32;

struct Renamed {
  absl::string_view from;
  absl::string_view to;
};

// Where CLDR goes another way: names that the detectors made up, and Norwegian, whose Bokmål nobody calls nb but
// people.
constexpr Renamed kRenamed[] = {
    {"als", "gsw"},  // Wikipedia's code for Alemannic, which lid.176 took over; in ISO 639-3 it is Tosk Albanian
    {"un", "und"},  {"xxx", "und"},
};

std::string LikelyScript(icu::Locale locale) {
  UErrorCode error = U_ZERO_ERROR;
  locale.addLikelySubtags(error);
  return U_SUCCESS(error) ? locale.getScript() : "";
}

bool IsLanguageTag(absl::string_view name) {
  return !name.empty() && name.size() <= kNameBytesMax && absl::ascii_isalpha(name[0]) &&
         std::all_of(name.begin(), name.end(), [](char c) { return absl::ascii_isalnum(c) || c == '-' || c == '_'; });
}

}  // namespace

std::string LanguageLabel(absl::string_view name) {
  for (const Renamed& renamed : kRenamed) {
    if (name == renamed.from) return std::string(renamed.to);
  }
  if (!IsLanguageTag(name)) return std::string(kUnknownLanguage);
  icu::Locale locale = icu::Locale::createCanonical(std::string(name).c_str());
  std::string language = locale.getLanguage();
  std::string script = *locale.getScript() != '\0' ? locale.getScript() : "";
  // CLD2's name for a script without a language is xx-Cher.
  if (language.empty() || language == "xx") return script.empty() ? "und" : absl::StrCat("und-", script);
  if (language == "nb") language = "no";
  // zh-TW says Hant by its region.
  if (script.empty()) script = LikelyScript(locale);
  // Han is how Chinese is written, whichever of its two forms is meant.
  bool is_usual = script.empty() || script == "Hani" || script == LikelyScript(icu::Locale(language.c_str()));
  return is_usual ? language : absl::StrCat(language, "-", script);
}

bool IsLanguageIn(absl::string_view label, absl::string_view range) {
  return absl::StartsWith(label, range) && (label.size() == range.size() || label[range.size()] == '-');
}

}  // namespace llmctl::data
