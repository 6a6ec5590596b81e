// Which language is a text in?
//
//   LLM_ASSIGN_OR_RETURN(std::unique_ptr<const LanguageDetector> detector, LanguageDetector::Create(settings));
//   std::unique_ptr<LanguageScratch> scratch = detector->MakeScratch();  // of one thread
//   LanguageGuess guess = detector->Detect(text, *scratch);              // text is valid UTF-8
//   LanguageVerdict verdict = Judge(guess, settings);
//
// The same text gives the same guess, whatever was asked before and from whichever thread.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "worker/data/language/language_settings.h"
#include "worker/data/language/language_verdict.h"

namespace llmctl::data {

// What one thread reuses from text to text. CLD2's is empty; fastText's grows to 12 MB of remembered words (and, with
// whole_text, ten times the longest text).
class LanguageScratch {
 public:
  virtual ~LanguageScratch() = default;
};

// Const after construction, safe from any thread. Memory: CLD2's tables are 8 MB that all processes share; a fastText
// model is as large as its file (twice that while it is read).
class LanguageDetector {
 public:
  // Fails on settings that do not validate, a model file that cannot be used, and a language to keep that the detector
  // never names.
  static absl::StatusOr<std::unique_ptr<const LanguageDetector>> Create(const LanguageSettings& settings);

  virtual ~LanguageDetector() = default;
  LanguageDetector(const LanguageDetector&) = delete;
  LanguageDetector& operator=(const LanguageDetector&) = delete;

  virtual std::unique_ptr<LanguageScratch> MakeScratch() const = 0;

  // `scratch` is of this detector.
  LanguageGuess Detect(absl::string_view text, LanguageScratch& scratch) const;

  // What gives the guesses, to be kept beside them: "cld2 V2.0 - 20141016", "fasttext sha256:...", with the bytes that
  // are looked at.
  std::string Identity() const;

 protected:
  // `name` is the detector's part of Identity().
  LanguageDetector(const LanguageSettings& settings, std::string name);

 private:
  virtual LanguageGuess DetectSample(absl::string_view sample, LanguageScratch& scratch) const = 0;

  const std::string name_;
  const size_t bytes_max_;
};

}  // namespace llmctl::data
