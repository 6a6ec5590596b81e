// fastText: a bag of the rows of a text's words and their character n-grams, averaged, into a softmax over labels.
//
// Gives what Python's fasttext.predict gives of the text with its line feeds made spaces, but for two things: a text
// without a word that the model knows is "und", where the library judges by the end of the line alone; and a word
// "</s>" in the text does not end it.
//
// Words are looked up here and their rows remembered, because the library forms and hashes each n-gram of a word every
// time; the library adds the rows and predicts.
//
// Thread safety: after loading, the library only reads the model; a prediction's state is on its stack.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "worker/data/language/language_detector.h"

namespace llmctl::data {

class FastTextDetector : public LanguageDetector {
 public:
  static absl::StatusOr<std::unique_ptr<FastTextDetector>> Load(const LanguageSettings& settings);
  // The same, of a model file's content.
  static absl::StatusOr<std::unique_ptr<FastTextDetector>> Make(const LanguageSettings& settings,
                                                                const std::string& model);
  ~FastTextDetector() override;

  // All that it may say, but "und" and what begins so.
  std::vector<std::string> Labels() const;
  std::unique_ptr<LanguageScratch> MakeScratch() const override;

 private:
  class Model;  // keeps the library's headers out of ours
  class Scratch;

  FastTextDetector(const LanguageSettings& settings, std::unique_ptr<Model> model, std::string digest);
  LanguageGuess DetectSample(absl::string_view sample, LanguageScratch& scratch) const override;

  const std::unique_ptr<const Model> model_;
};

}  // namespace llmctl::data
