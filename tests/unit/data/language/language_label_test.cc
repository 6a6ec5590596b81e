#include "worker/data/language/language_label.h"

#include <string>
#include <utility>

#include <gtest/gtest.h>

namespace llmctl::data {
namespace {

TEST(LanguageLabel, IsOneForAllNamesOfALanguage) {
  const std::pair<const char*, const char*> names[] = {
      {"en", "en"},       {"EN", "en"},        {"eng_Latn", "en"},       {"en-US", "en"},      {"iw", "he"},
      {"jw", "jv"},       {"tl", "fil"},       {"no", "no"},             {"nb", "no"},         {"nob_Latn", "no"},
      {"nn", "nn"},       {"zh", "zh"},        {"zh-CN", "zh"},          {"zh-Hans", "zh"},    {"zh-Hant", "zh-Hant"},
      {"zh_TW", "zh-Hant"}, {"cmn_Hani", "zh"}, {"yue", "yue"},          {"sr", "sr"},         {"sh", "sr-Latn"},
      {"sr-ME", "sr-Latn"}, {"srp_Cyrl", "sr"}, {"arb_Arab", "ar"},      {"als", "gsw"},       {"als_Latn", "sq"},
      {"haw", "haw"},     {"kk-Arab", "kk-Arab"}, {"und", "und"},        {"un", "und"},        {"xxx", "und"},
      {"xx-Cher", "und-Cher"}, {"", "und"},    {"not a language", "und"}, {"e\xc3\xa9", "und"}, {"7", "und"},
  };
  for (const auto& [name, label] : names) EXPECT_EQ(LanguageLabel(name), label) << name;
}

TEST(LanguageLabel, OfALabelIsItself) {
  for (const char* name : {"en", "sh", "iw", "zh-TW", "xx-Cher", "tl", "als_Latn", "mo", "bh", "english"}) {
    std::string label = LanguageLabel(name);
    EXPECT_EQ(LanguageLabel(label), label) << name;
  }
}

TEST(IsLanguageIn, TakesWholeParts) {
  EXPECT_TRUE(IsLanguageIn("zh-Hant", "zh"));
  EXPECT_TRUE(IsLanguageIn("zh", "zh"));
  EXPECT_FALSE(IsLanguageIn("zh", "zh-Hant"));
  EXPECT_FALSE(IsLanguageIn("ceb", "ce"));
}

}  // namespace
}  // namespace llmctl::data
