#include "worker/data/language/language_verdict.h"

#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace llmctl::data {
namespace {

using testing::HasSubstr;
using testing::Not;

LanguageRule RuleOf(absl::string_view label, double score, const LanguageSettings& settings) {
  return Judge({label, score, {}, 0}, settings).rule;
}

TEST(LanguageVerdict, KeepsEveryLanguageThatIsClearByDefault) {
  LanguageSettings settings;

  EXPECT_TRUE(Judge({"cy", 0.65, {}, 0}, settings).keep());
  EXPECT_EQ(Judge({"cy", 0.64, "en", 0.3}, settings),
            (LanguageVerdict{LanguageRule::kBelowThreshold, 0.64, 0.65}));
  EXPECT_EQ(ReasonName(LanguageRule::kBelowThreshold), "language_below_threshold");
}

TEST(LanguageVerdict, AsksForThresholdsByLanguage) {
  LanguageSettings settings;
  settings.keep = {{"en", 0.9}, {"de", std::nullopt}};

  EXPECT_EQ(RuleOf("en", 0.9, settings), LanguageRule::kNone);
  EXPECT_EQ(Judge({"en", 0.8, {}, 0}, settings), (LanguageVerdict{LanguageRule::kBelowThreshold, 0.8, 0.9}));
  EXPECT_EQ(RuleOf("de", 0.7, settings), LanguageRule::kNone);
  EXPECT_EQ(RuleOf("de", 0.6, settings), LanguageRule::kBelowThreshold);
  EXPECT_EQ(Judge({"fr", 0.99, {}, 0}, settings), (LanguageVerdict{LanguageRule::kNotKept, 0.99, 0.65}));
  EXPECT_EQ(ReasonName(LanguageRule::kNotKept), "language_not_kept");
}

TEST(LanguageVerdict, TakesAVarietyForItsLanguageUnlessItIsNamedItself) {
  LanguageSettings settings;
  settings.keep = {{"zh", 0.5}, {"sr-Latn", 0.5}};

  EXPECT_EQ(RuleOf("zh-Hant", 0.5, settings), LanguageRule::kNone);
  EXPECT_EQ(RuleOf("sr-Latn", 0.5, settings), LanguageRule::kNone);
  EXPECT_EQ(RuleOf("sr", 1, settings), LanguageRule::kNotKept);
  settings.keep["zh-Hant"] = 0.8;
  EXPECT_EQ(RuleOf("zh-Hant", 0.5, settings), LanguageRule::kBelowThreshold);
  EXPECT_EQ(RuleOf("zh", 0.5, settings), LanguageRule::kNone);
}

TEST(LanguageVerdict, DropsOrKeepsTheUnknown) {
  LanguageSettings settings;

  EXPECT_EQ(Judge({"und", 0, {}, 0}, settings), (LanguageVerdict{LanguageRule::kUnknown, 0, 0.65}));
  EXPECT_EQ(RuleOf("und-Cher", 1, settings), LanguageRule::kUnknown);
  EXPECT_EQ(ReasonName(LanguageRule::kUnknown), "language_unknown");
  settings.keep_unknown = true;
  settings.keep = {{"en", std::nullopt}};
  EXPECT_EQ(RuleOf("und", 0, settings), LanguageRule::kNone);
}

TEST(LanguageSettings, NamesAllFaultsAtOnce) {
  LanguageSettings settings;
  settings.detector = LanguageDetectorKind::kFastText;
  settings.threshold = std::numeric_limits<double>::quiet_NaN();
  settings.keep = {{"iw", std::nullopt}, {"fr", 1.5}, {"?", std::nullopt}, {"und", std::nullopt}, {"de", 0.5}};

  absl::Status status = settings.Validate();

  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  for (const char* part : {"model_file is missing", "threshold is nan", "write \"iw\" as \"he\"",
                           "the threshold of \"fr\" is 1.5", "\"?\" is no language", "\"und\" is no language"}) {
    EXPECT_THAT(std::string(status.message()), HasSubstr(part));
  }
  EXPECT_THAT(std::string(status.message()), Not(HasSubstr("\"de\"")));
}

TEST(LanguageSettings, AModelFileIsFastTextsAlone) {
  LanguageSettings settings;
  EXPECT_TRUE(settings.Validate().ok());
  settings.model_file = "lid.176.ftz";
  EXPECT_THAT(std::string(settings.Validate().message()), HasSubstr("cld2 takes none"));
  settings.detector = LanguageDetectorKind::kFastText;
  EXPECT_TRUE(settings.Validate().ok());
}

}  // namespace
}  // namespace llmctl::data
