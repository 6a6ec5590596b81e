#include "worker/data/normalize/text_normalizer.h"

#include <string>

#include <gtest/gtest.h>

#include "worker/data/normalize/utf8_repair.h"

namespace llmctl::data {
namespace {

std::string Replaced(std::string text, int64_t expected_count) {
  EXPECT_EQ(ReplaceInvalidUtf8(text), expected_count) << text;
  return text;
}

std::string Normalized(const std::string& text, const NormalizeSettings& settings = {}) {
  Repairs repairs;
  std::string scratch;
  return std::string(TextNormalizer(settings).Normalize(text, scratch, repairs));
}

TEST(ReplaceInvalidUtf8, LeavesValidTextAlone) {
  std::string text = "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x99\x82\xef\xbf\xbd\xed\x9f\xbf\xee\x80\x80\xf4\x8f\xbf\xbf";

  EXPECT_EQ(Replaced(text, 0), text);
  EXPECT_EQ(FindInvalidUtf8(text), absl::string_view::npos);
}

TEST(ReplaceInvalidUtf8, ReplacesEachMaximalPartOnce) {
  EXPECT_EQ(Replaced("caf\xe9!", 1), "caf\uFFFD!");
  EXPECT_EQ(Replaced("\xe2\x82", 1), "\uFFFD");  // cut short
  EXPECT_EQ(Replaced("\xe2\x82X", 1), "\uFFFDX");
  EXPECT_EQ(Replaced("\xf0\x9f\x99", 1), "\uFFFD");
  EXPECT_EQ(Replaced("\xc0\xaf", 2), "\uFFFD\uFFFD");  // overlong
  EXPECT_EQ(Replaced("\xe0\x80\x80", 3), "\uFFFD\uFFFD\uFFFD");
  EXPECT_EQ(Replaced("\xed\xa0\xbd", 3), "\uFFFD\uFFFD\uFFFD");            // a surrogate
  EXPECT_EQ(Replaced("\xf4\x90\x80\x80", 4), "\uFFFD\uFFFD\uFFFD\uFFFD");  // beyond U+10FFFF
  EXPECT_EQ(Replaced("\xff\x80", 2), "\uFFFD\uFFFD");
  // The example of the Unicode standard, section 3.9.
  EXPECT_EQ(Replaced("\x61\xF1\x80\x80\xE1\x80\xC2\x62\x80\x63\x80\xBF\x64", 6),
            "a\uFFFD\uFFFD\uFFFDb\uFFFDc\uFFFD\uFFFDd");
}

TEST(FindInvalidUtf8, GivesTheFirstBadByte) {
  EXPECT_EQ(FindInvalidUtf8("abc\xff\xff"), 3u);
  EXPECT_EQ(FindInvalidUtf8("\xc3\xa9\xe2\x82"), 2u);
}

TEST(TextNormalizer, DropsControlCharactersButKeepsTabAndNewline) {
  EXPECT_EQ(Normalized(std::string("a\0b\tc\nd\x1b[0m\x7f", 11)), "ab\tc\nd[0m");
  EXPECT_EQ(Normalized("x\xc2\x85y\xc2\x9fz\xc2\xa0!"), "xyz\xc2\xa0!");  // C1 goes, the no-break space stays
}

TEST(TextNormalizer, MakesEveryLineEndALineFeed) { EXPECT_EQ(Normalized("a\r\nb\rc\n\rd\r"), "a\nb\nc\n\nd\n"); }

TEST(TextNormalizer, ComposesAndCountsWhatItDid) {
  Repairs repairs;
  std::string scratch;

  absl::string_view text = TextNormalizer({}).Normalize(
      "\xEF\xBB\xBF"
      "e\xcc\x81\r\n\x01",
      scratch, repairs);

  EXPECT_EQ(text, "\xc3\xa9\n");
  EXPECT_EQ(repairs, (Repairs{.byte_order_marks = 1,
                              .control_characters = 1,
                              .carriage_returns = 1,
                              .normalized_documents = 1}));
}

TEST(TextNormalizer, TextThatIsNormalIsNotCopied) {
  Repairs repairs;
  std::string scratch, text = "plain\ttext, \xc3\xa9t\xc3\xa9\n" + std::string(200, 'x');

  absl::string_view out = TextNormalizer({}).Normalize(text, scratch, repairs);

  EXPECT_EQ(out.data(), text.data());
  EXPECT_EQ(out.size(), text.size());
  EXPECT_EQ(repairs, Repairs());
}

TEST(TextNormalizer, AControlCharacterIsFoundAnywhere) {
  for (size_t at = 0; at < 200; ++at) {
    std::string text(200, 'x');
    text[at] = '\x02';
    EXPECT_EQ(Normalized(text), std::string(199, 'x')) << at;
    text.replace(at, 1, "\xc2\x90");
    EXPECT_EQ(Normalized(text), std::string(199, 'x')) << at;
  }
}

TEST(TextNormalizer, EachPolicyCanBeTurnedOff) {
  std::string text = "\x0c" "e\xcc\x81\r\n\xc2\x85\x01 ";

  EXPECT_EQ(Normalized(text, {.form = UnicodeForm::kNone}), "e\xcc\x81\n ");
  EXPECT_EQ(Normalized(text, {.controls = ControlPolicy::kKeep}), "\x0c\xc3\xa9\n\xc2\x85\x01 ");
  EXPECT_EQ(Normalized(text, {.newlines = NewlinePolicy::kKeep}), "\xc3\xa9\r\n ");
  EXPECT_EQ(Normalized("\xef\xac\x81 \xef\xbc\xa1 x\xc2\xb2", {.form = UnicodeForm::kNfkc}), "fi A x2");
}

TEST(TextNormalizer, WhiteSpaceIsTrimmedOrCollapsed) {
  std::string text = " \xe3\x80\x80\n a \t\xc2\xa0 b \n \n\n\n  c\nd\xe2\x80\x83\n\xEF\xBB\xBF";

  EXPECT_EQ(Normalized(text, {.whitespace = WhitespacePolicy::kTrim}),
            "a \t\xc2\xa0 b \n \n\n\n  c\nd");
  EXPECT_EQ(Normalized(text, {.whitespace = WhitespacePolicy::kCollapse}), "a b\n\nc\nd");
  EXPECT_EQ(Normalized(" \n\t", {.whitespace = WhitespacePolicy::kCollapse}), "");
}

TEST(TextNormalizer, EverySettingIsIdempotent) {
  const std::string text =
      "\xEF\xBB\xBF \xEF\xBB\xBFx\r\r\n y \x01\r \xc2\xa0\xcc\x81 \xe2\x80\x83z\xef\xac\x81\n\n\n\n ";
  for (UnicodeForm form : {UnicodeForm::kNone, UnicodeForm::kNfc, UnicodeForm::kNfkc}) {
    for (ControlPolicy controls : {ControlPolicy::kRemove, ControlPolicy::kKeep}) {
      for (NewlinePolicy newlines : {NewlinePolicy::kLineFeed, NewlinePolicy::kKeep}) {
        for (WhitespacePolicy white : {WhitespacePolicy::kKeep, WhitespacePolicy::kTrim, WhitespacePolicy::kCollapse}) {
          NormalizeSettings settings{form, controls, newlines, white};
          std::string once = Normalized(text, settings);
          EXPECT_EQ(Normalized(once, settings), once);
        }
      }
    }
  }
}

TEST(TextNormalizer, IsIdempotent) {
  for (const char* text :
       {"e\xcc\x81\r\r\n", "\xEF\xBB\xBFx\ry", "\xea\xb0\x80\xe1\x86\xa8", "\xe2\x84\xab\xe1\xba\x9b\xcc\xa3"}) {
    std::string once = Normalized(text);
    EXPECT_NE(once, text);
    EXPECT_EQ(Normalized(once), once);
  }
}

TEST(HasContent, BlanksOfAllKindsAreNone) {
  EXPECT_FALSE(HasContent(""));
  EXPECT_FALSE(HasContent(" \t\n\xc2\xa0\xe3\x80\x80\xEF\xBB\xBF"));
  EXPECT_TRUE(HasContent("  x"));
  EXPECT_TRUE(HasContent("\xe3\x81\x82"));
}

}  // namespace
}  // namespace llmctl::data
