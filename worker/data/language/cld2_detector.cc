#include "worker/data/language/cld2_detector.h"

#include <algorithm>
// CLD2's header uses FILE and does not include it.
#include <cstdio>

#include <cld2/public/compact_lang_det.h>
#include <cld2/public/encodings.h>

#include "absl/strings/str_cat.h"

#include "worker/data/language/language_label.h"

namespace llmctl::data {
namespace {

// Jokes among CLD2's languages: Swedish Chef, pig Latin, hacker, Elmer Fudd. (It knows Klingon too, as tlh.)
constexpr absl::string_view kJokes[] = {"zzb", "zzp", "zzh", "zze"};

std::string LabelOf(CLD2::Language language) {
  std::string code = CLD2::LanguageCode(language);
  bool is_joke = std::find(std::begin(kJokes), std::end(kJokes), code) != std::end(kJokes);
  return is_joke ? std::string(kUnknownLanguage) : LanguageLabel(code);
}

}  // namespace

Cld2Detector::Cld2Detector(const LanguageSettings& settings)
    : LanguageDetector(settings, absl::StrCat("cld2 ", CLD2::DetectLanguageVersion())) {
  for (int number = 0; number < CLD2::NUM_LANGUAGES; ++number) {
    labels_.push_back(LabelOf(static_cast<CLD2::Language>(number)));
  }
}

std::vector<std::string> Cld2Detector::Labels() const {
  std::vector<std::string> out;
  for (int number = 0; number < CLD2::NUM_LANGUAGES; ++number) {
    bool recognised =
        CLD2::LanguageRecognizedScript(static_cast<CLD2::Language>(number), 0) != CLD2::ULScript_Common;
    if (recognised && !IsLanguageIn(labels_[number], kUnknownLanguage)) out.push_back(labels_[number]);
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

std::unique_ptr<LanguageScratch> Cld2Detector::MakeScratch() const { return std::make_unique<LanguageScratch>(); }

LanguageGuess Cld2Detector::DetectSample(absl::string_view sample, LanguageScratch& scratch) const {
  // None of these may be null.
  const CLD2::CLDHints no_hints = {"", "", CLD2::UNKNOWN_ENCODING, CLD2::UNKNOWN_LANGUAGE};
  CLD2::Language languages[3];
  int percents[3];
  double normal_scores[3];
  int letter_bytes = 0;
  bool is_reliable = false;
  CLD2::ExtDetectLanguageSummary(sample.data(), static_cast<int>(sample.size()), /*is_plain_text=*/true, &no_hints,
                                 /*flags=*/0, languages, percents, normal_scores, /*resultchunkvector=*/nullptr,
                                 &letter_bytes, &is_reliable);
  LanguageGuess guess{labels_[languages[0]], percents[0] / 100.0, {}, 0};
  if (languages[1] != CLD2::UNKNOWN_LANGUAGE) {
    guess.second = labels_[languages[1]];
    guess.second_score = percents[1] / 100.0;
  }
  return guess;
}

}  // namespace llmctl::data
