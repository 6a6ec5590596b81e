// CLD2: https://github.com/CLD2Owners/cld2, with its tables of about 160 languages.
//
// The score is the share of the text's letters that are in the language. What CLD2 finds by its own summary (English
// around another language is taken for a web page's frame) is not asked for: the language of most letters counts.
//
// Thread safety: CLD2 keeps its state on the stack and the heap of a call. Two variables of its debug output are set
// to the same constants by every call and are read only when that output is on, which is never here.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "worker/data/language/language_detector.h"

namespace llmctl::data {

class Cld2Detector : public LanguageDetector {
 public:
  explicit Cld2Detector(const LanguageSettings& settings);

  // All that it may say, but "und" and what begins so.
  std::vector<std::string> Labels() const;
  std::unique_ptr<LanguageScratch> MakeScratch() const override;

 private:
  LanguageGuess DetectSample(absl::string_view sample, LanguageScratch& scratch) const override;

  std::vector<std::string> labels_;  // by CLD2's number of the language
};

}  // namespace llmctl::data
