#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

#include "tests/unit/data/language/trained_model.h"
#include "worker/data/language/language_detector.h"

namespace llmctl::data {
namespace {

using testing::HasSubstr;

std::unique_ptr<const LanguageDetector> Cld2(const LanguageSettings& settings = {}) {
  absl::StatusOr<std::unique_ptr<const LanguageDetector>> detector = LanguageDetector::Create(settings);
  EXPECT_TRUE(detector.ok()) << detector.status().message();
  return *std::move(detector);
}

LanguageGuess Guess(const LanguageDetector& detector, absl::string_view text) {
  return detector.Detect(text, *detector.MakeScratch());
}

std::string Repeated(absl::string_view text, size_t bytes_min) {
  std::string out;
  while (out.size() < bytes_min) absl::StrAppend(&out, text, ". ");
  return out;
}

TEST(Cld2Detector, TellsLanguages) {
  auto detector = Cld2();
  for (const char* language : {"en", "de", "fr", "es", "ru"}) {
    LanguageGuess guess = Guess(*detector, SentenceIn(language));
    EXPECT_EQ(guess.label, language);
    EXPECT_GT(guess.score, 0.9) << language;
  }
}

TEST(Cld2Detector, HasTheLargeTablesAndOurLabels) {
  auto detector = Cld2();
  // Only libcld2_full knows Esperanto; CLD2 calls Hebrew iw.
  EXPECT_EQ(Guess(*detector, "La birdoj sidas sur la tegmento de tiu ĉi domo kaj rigardas la urbon").label, "eo");
  EXPECT_EQ(Guess(*detector, "האונייה עוזבת את הנמל מוקדם בבוקר").label, "he");
  EXPECT_EQ(Guess(*detector, "我们想知道明天的天气怎么样，因为我们要坐船出去").label, "zh");
  EXPECT_EQ(Guess(*detector, "我們想知道明天的天氣怎麼樣，因為我們要坐船出去").label, "zh-Hant");
}

TEST(Cld2Detector, SaysTheSharesOfTwoLanguages) {
  LanguageGuess guess =
      Guess(*Cld2(), absl::StrCat(Repeated(SentenceIn("en"), 3000), Repeated(SentenceIn("ru"), 1500)));

  EXPECT_EQ(guess.label, "en");
  EXPECT_EQ(guess.second, "ru");
  EXPECT_NEAR(guess.score, 0.67, 0.05);
  EXPECT_NEAR(guess.second_score, 0.33, 0.05);
}

TEST(Cld2Detector, CannotTellWithoutLetters) {
  auto detector = Cld2();
  for (const char* text : {"", " ", "12 + 34 = 46\n", "\xe2\x98\x83", "\x01\x02"}) {
    LanguageGuess guess = Guess(*detector, text);
    EXPECT_EQ(guess.label, "und") << text;
    EXPECT_EQ(guess.score, 0) << text;
  }
}

TEST(Cld2Detector, ReadsTextWithControlCharacters) {
  // pycld2 refuses it.
  EXPECT_EQ(Guess(*Cld2(), absl::StrCat(SentenceIn("de"), "\x01\x7f ", SentenceIn("de"))).label, "de");
}

TEST(Cld2Detector, LooksAtTheFirstBytesOnly) {
  std::string text = Repeated(SentenceIn("en"), kSampleBytes) + Repeated(SentenceIn("ru"), 3 * kSampleBytes);

  EXPECT_EQ(Guess(*Cld2(), text).label, "en");
  EXPECT_EQ(Guess(*Cld2({.whole_text = true}), text).label, "ru");
}

TEST(Cld2Detector, CutsBetweenCharacters) {
  auto detector = Cld2();
  for (size_t shift = 0; shift < 4; ++shift) {
    // Letters of two bytes, so that every other shift ends the sample within one.
    std::string whole(shift, ' ');
    while (whole.size() < 2 * kSampleBytes) absl::StrAppend(&whole, SentenceIn("ru"), " ");
    size_t end = kSampleBytes;
    while ((whole[end] & 0xc0) == 0x80) --end;
    EXPECT_EQ(Guess(*detector, whole), Guess(*detector, whole.substr(0, end)));
  }
}

TEST(Cld2Detector, AGiantTextDoesNotOverflow) {
  LanguageGuess guess = Guess(*Cld2({.whole_text = true}), Repeated(SentenceIn("en"), 2 * kWholeTextBytesMax));
  EXPECT_EQ(guess.label, "en");
  EXPECT_GT(guess.score, 0.9);
}

TEST(Cld2Detector, GivesEveryThreadTheSameGuesses) {
  auto detector = Cld2();
  std::vector<std::string> texts;
  std::vector<LanguageGuess> expected;
  for (const char* language : {"en", "de", "fr", "es", "ru"}) {
    texts.push_back(SentenceIn(language));
    expected.push_back(Guess(*detector, texts.back()));
  }
  std::vector<std::vector<LanguageGuess>> guesses(4);
  std::vector<std::thread> threads;
  for (std::vector<LanguageGuess>& own : guesses) {
    threads.emplace_back([&] {
      std::unique_ptr<LanguageScratch> scratch = detector->MakeScratch();
      for (int i = 0; i < 200; ++i) own.push_back(detector->Detect(texts[i % texts.size()], *scratch));
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::vector<LanguageGuess>& own : guesses) {
    for (size_t i = 0; i < own.size(); ++i) EXPECT_EQ(own[i], expected[i % expected.size()]);
  }
}

TEST(Cld2Detector, RefusesToKeepWhatItNeverNames) {
  absl::Status status = LanguageDetector::Create({.keep = {{"en", {}}, {"gsw", {}}, {"english", {}}}}).status();

  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("cld2 never names english, gsw; it names "));
  EXPECT_THAT(std::string(status.message()), HasSubstr(" zh zh-Hant "));
}

TEST(Cld2Detector, SaysWhoItIs) {
  EXPECT_THAT(Cld2()->Identity(), HasSubstr("cld2 V2.0"));
  EXPECT_NE(Cld2()->Identity(), Cld2({.whole_text = true})->Identity());
}

}  // namespace
}  // namespace llmctl::data
