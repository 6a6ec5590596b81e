#include "worker/data/language/language_settings.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "worker/data/language/language_label.h"

namespace llmctl::data {
namespace {

// Not a number is no share either.
bool IsShare(double value) { return value >= 0 && value <= 1; }

void CheckKept(absl::string_view language, std::optional<double> threshold, std::vector<std::string>& faults) {
  std::string label = LanguageLabel(language);
  if (IsLanguageIn(label, kUnknownLanguage)) {
    faults.push_back(absl::StrCat("keep: \"", language, "\" is no language; keep_unknown keeps documents without one"));
  } else if (label != language) {
    faults.push_back(absl::StrCat("keep: write \"", language, "\" as \"", label, "\""));
  }
  if (threshold.has_value() && !IsShare(*threshold)) {
    faults.push_back(absl::StrCat("keep: the threshold of \"", language, "\" is ", *threshold, ", expected 0 to 1"));
  }
}

}  // namespace

absl::string_view DetectorName(LanguageDetectorKind kind) {
  return kind == LanguageDetectorKind::kCld2 ? "cld2" : "fasttext";
}

absl::Status LanguageSettings::Validate() const {
  std::vector<std::string> faults;
  if (detector == LanguageDetectorKind::kFastText && model_file.empty()) {
    faults.push_back("model_file is missing: fasttext needs a model, such as lid.176.ftz");
  }
  if (detector == LanguageDetectorKind::kCld2 && !model_file.empty()) {
    faults.push_back(absl::StrCat("model_file is ", model_file, ", but cld2 takes none: set detector to fasttext"));
  }
  if (!IsShare(threshold)) faults.push_back(absl::StrCat("threshold is ", threshold, ", expected 0 to 1"));
  for (const auto& [language, own_threshold] : keep) CheckKept(language, own_threshold, faults);
  if (faults.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("language: ", absl::StrJoin(faults, "; ")));
}

}  // namespace llmctl::data
