#include <sstream>
#include <thread>
#include <vector>

#include <fasttext/fasttext.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

#include "common/base/file.h"
#include "tests/unit/data/language/trained_model.h"
#include "tests/unit/temporary_directory.h"
#include "worker/data/language/language_detector.h"

namespace llmctl::data {
namespace {

using testing::HasSubstr;

std::unique_ptr<const LanguageDetector> FastText(LanguageSettings settings, const std::string& model) {
  settings.detector = LanguageDetectorKind::kFastText;
  settings.model_file = model;
  absl::StatusOr<std::unique_ptr<const LanguageDetector>> detector = LanguageDetector::Create(settings);
  EXPECT_TRUE(detector.ok()) << detector.status().message();
  return *std::move(detector);
}

std::unique_ptr<const LanguageDetector> FastText() { return FastText({}, TrainedModel()); }

LanguageGuess Guess(const LanguageDetector& detector, absl::string_view text) {
  return detector.Detect(text, *detector.MakeScratch());
}

// What the library itself says of a line, as Python's predict asks it.
std::pair<std::string, double> AskLibrary(const fasttext::FastText& model, const std::string& text) {
  std::istringstream in(absl::StrReplaceAll(text, {{"\n", " "}}) + "\n");
  std::vector<std::pair<fasttext::real, std::string>> predictions;
  model.predictLine(in, predictions, 1, 0);
  return {predictions[0].second.substr(9), predictions[0].first};
}

std::vector<std::string> Texts() {
  std::vector<std::string> texts;
  for (const char* language : {"en", "de", "fr", "es", "ru"}) texts.push_back(SentenceIn(language));
  texts.push_back(texts[0] + "\n" + texts[1] + "\n\n" + texts[1]);
  texts.push_back("\t" + texts[2] + std::string("\0\v\f\r", 4) + texts[3] + "\n");
  texts.push_back("__label__de __label__xx " + texts[4]);
  texts.push_back(std::string(100, 'w') + " " + texts[0] + " " + std::string(100, 'w'));
  return texts;
}

TEST(FastTextDetector, TellsLanguages) {
  auto detector = FastText();
  for (const char* language : {"en", "de", "fr", "es", "ru"}) {
    LanguageGuess guess = Guess(*detector, SentenceIn(language));
    EXPECT_EQ(guess.label, language);
    EXPECT_GT(guess.score, 0.65) << language;
    EXPECT_LE(guess.score, 1) << language;
    EXPECT_NE(guess.second, "");
  }
}

TEST(FastTextDetector, SaysWhatTheLibrarySays) {
  for (bool quantized : {false, true}) {
    auto detector = FastText({}, TrainedModel(quantized));
    std::unique_ptr<LanguageScratch> scratch = detector->MakeScratch();
    fasttext::FastText library;
    library.loadModel(TrainedModel(quantized));
    EXPECT_EQ(library.isQuant(), quantized);
    // Twice, so that words are read and remembered.
    for (int round = 0; round < 2; ++round) {
      for (const std::string& text : Texts()) {
        LanguageGuess guess = detector->Detect(text, *scratch);
        auto [label, score] = AskLibrary(library, text);
        EXPECT_EQ(guess.label, label) << text;
        EXPECT_NEAR(guess.score, std::min(1.0, score), 1e-7) << text;
      }
    }
  }
}

TEST(FastTextDetector, ALineFeedIsASpace) {
  auto detector = FastText();
  LanguageGuess guess = Guess(*detector, SentenceIn("fr"));

  EXPECT_EQ(Guess(*detector, SentenceIn("fr") + "\n"), guess);
  EXPECT_EQ(Guess(*detector, "\n\n" + absl::StrReplaceAll(SentenceIn("fr"), {{" ", "\n"}})), guess);
}

TEST(FastTextDetector, AWordThatLooksLikeALinesEndDoesNotEndTheText) {
  EXPECT_EQ(Guess(*FastText(), "</s> " + SentenceIn("es")), Guess(*FastText(), SentenceIn("es")));
}

TEST(FastTextDetector, CannotTellWithoutWords) {
  for (const char* text : {"", " \n", "</s>", "__label__en"}) {
    EXPECT_EQ(Guess(*FastText(), text), (LanguageGuess{"und", 0, "", 0})) << text;
  }
}

TEST(FastTextDetector, GuessesDoNotDependOnWhatWasAskedBefore) {
  auto detector = FastText();
  std::unique_ptr<LanguageScratch> scratch = detector->MakeScratch();
  LanguageGuess guess = Guess(*detector, SentenceIn("de"));
  // So many words that those remembered are forgotten several times.
  std::string text;
  for (int i = 0; i < 1000; ++i) absl::StrAppend(&text, i, " ");
  for (int round = 0; round < 150; ++round) {
    detector->Detect(absl::StrReplaceAll(text, {{" ", absl::StrCat("x", round, " ")}}), *scratch);
    ASSERT_EQ(detector->Detect(SentenceIn("de"), *scratch), guess) << round;
  }
}

TEST(FastTextDetector, GivesEveryThreadTheSameGuesses) {
  auto detector = FastText({}, TrainedModel(/*quantized=*/true));
  const std::vector<std::string> texts = Texts();
  std::vector<LanguageGuess> expected;
  for (const std::string& text : texts) expected.push_back(Guess(*detector, text));
  std::vector<std::vector<LanguageGuess>> guesses(4);
  std::vector<std::thread> threads;
  for (std::vector<LanguageGuess>& own : guesses) {
    threads.emplace_back([&] {
      std::unique_ptr<LanguageScratch> scratch = detector->MakeScratch();
      for (int i = 0; i < 300; ++i) own.push_back(detector->Detect(texts[i % texts.size()], *scratch));
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::vector<LanguageGuess>& own : guesses) {
    for (size_t i = 0; i < own.size(); ++i) EXPECT_EQ(own[i], expected[i % expected.size()]);
  }
}

TEST(FastTextDetector, SaysWhichFileItCannotUse) {
  TemporaryDirectory folder;
  LanguageSettings settings{.detector = LanguageDetectorKind::kFastText, .model_file = folder / "model"};
  EXPECT_EQ(LanguageDetector::Create(settings).status().code(), absl::StatusCode::kNotFound);

  ASSERT_TRUE(WriteFileAtomically(settings.model_file, "not a model").ok());
  std::string message(LanguageDetector::Create(settings).status().message());
  EXPECT_THAT(message, HasSubstr(settings.model_file));
  EXPECT_THAT(message, HasSubstr("no fastText model"));
}

TEST(FastTextDetector, RefusesToKeepWhatTheModelNeverNames) {
  LanguageSettings settings{.detector = LanguageDetectorKind::kFastText,
                            .model_file = TrainedModel(),
                            .keep = {{"en", {}}, {"zh-Hant", {}}}};
  EXPECT_THAT(std::string(LanguageDetector::Create(settings).status().message()),
              HasSubstr("fasttext never names zh-Hant; it names de en es fr ru"));
}

TEST(FastTextDetector, IsIdentifiedByItsModel) {
  EXPECT_EQ(FastText()->Identity(), FastText()->Identity());
  EXPECT_NE(FastText()->Identity(), FastText({}, TrainedModel(/*quantized=*/true))->Identity());
}

}  // namespace
}  // namespace llmctl::data
