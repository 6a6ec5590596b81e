#include "worker/data/tokenizer/pre_tokenizer.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unicode/uchar.h>

#include "worker/data/tokenizer/char_class.h"

namespace llmctl::data {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> Pieces(Pattern pattern, const std::string& text) {
  PreTokenizer pre_tokenizer(pattern);
  std::vector<std::string> pieces;
  const char* end = text.data() + text.size();
  for (const char* at = text.data(); at < end;) {
    const char* next = pre_tokenizer.PieceEnd(at, end);
    pieces.emplace_back(at, next);
    at = next;
  }
  return pieces;
}

TEST(CharClass, IsWhatIcuKnows) {
  CharClassTable table;
  int newer = 0;
  for (UChar32 c = 0; c < 0x110000; ++c) {
    uint32_t mask = U_GET_GC_MASK(c);
    CharClass expected = mask & U_GC_L_MASK         ? CharClass::kLetter
                         : mask & U_GC_N_MASK       ? CharClass::kNumber
                         : u_isUWhiteSpace(c) != 0  ? CharClass::kSpace
                                                    : CharClass::kOther;
    // A character that this ICU is too old to know.
    if (mask & U_GC_CN_MASK && table.Of(c) != CharClass::kOther) {
      ++newer;
    } else if (!(mask & U_GC_CN_MASK)) {
      EXPECT_EQ(static_cast<int>(table.Of(c)), static_cast<int>(expected)) << std::hex << c;
    }
  }
  EXPECT_LE(newer, 5004) << "what Unicode 15.1 and 16.0 added to 15.0";
}

TEST(CharClass, BytesThatAreNotUtf8AreSymbols) {
  CharClassTable table;
  for (std::string bytes :
       {"\x80", "\xc3", "\xc3(", "\xe6\xb8", "\xf0\x9f\x9a", "\xff", "\xc0\xaf", "\xf5\x80\x80\x80"}) {
    CharClassTable::Char c = table.At(bytes.data(), bytes.data() + bytes.size());
    EXPECT_EQ(c.bytes, 1);
    EXPECT_EQ(static_cast<int>(c.char_class), static_cast<int>(CharClass::kOther));
  }
}

TEST(PreTokenizer, Gpt2TakesOneSpaceWithAWord) {
  EXPECT_THAT(Pieces(Pattern::kGpt2, "it's  12 ships!\n\n x "),
              ElementsAre("it", "'s", " ", " 12", " ships", "!", "\n\n", " x", " "));
}

TEST(PreTokenizer, Llama3TakesAnySymbolWithAWordAndDigitsByThrees) {
  EXPECT_THAT(Pieces(Pattern::kLlama3, "IT'S\t12345 (ships)!\n\n x"),
              ElementsAre("IT", "'S", "\t", "123", "45", " (", "ships", ")!\n\n", " x"));
}

TEST(PreTokenizer, QwenTakesDigitsOneByOne) {
  EXPECT_THAT(Pieces(Pattern::kQwen, "a12 \n  b"), ElementsAre("a", "1", "2", " \n", " ", " b"));
}

TEST(PreTokenizer, TheLongSIsAnSInAnotherCase) {
  EXPECT_THAT(Pieces(Pattern::kLlama3, "x'\xC5\xBFy"), ElementsAre("x", "'\xC5\xBF", "y"));
  EXPECT_THAT(Pieces(Pattern::kGpt2, "x'\xC5\xBFy"), ElementsAre("x", "'", "\xC5\xBFy"));
}

TEST(PreTokenizer, PatternsAreKnownByNameAndByRegex) {
  for (Pattern pattern : {Pattern::kGpt2, Pattern::kLlama3, Pattern::kQwen}) {
    EXPECT_EQ(PatternNamed(PatternName(pattern)), pattern);
    EXPECT_EQ(PatternOfRegex(PatternRegex(pattern)), pattern);
  }
  EXPECT_EQ(PatternNamed("bert"), absl::nullopt);
  EXPECT_EQ(PatternOfRegex("\\w+"), absl::nullopt);
}

}  // namespace
}  // namespace llmctl::data
