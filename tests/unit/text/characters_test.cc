#include "worker/data/text/characters.h"

#include <string>

#include <gtest/gtest.h>

namespace llmctl::data {
namespace {

TEST(CharacterTable, KnowsWhatPythonKnows) {
  const CharacterTable& table = CharacterTable::Get();

  for (char32_t space : {0x09, 0x0a, 0x0d, 0x1c, 0x1f, 0x20, 0x85, 0xa0, 0x1680, 0x2003, 0x2028, 0x202f, 0x3000}) {
    EXPECT_TRUE(table.Is(space, kSpace)) << static_cast<uint32_t>(space);
  }
  for (char32_t other : {0x00, 0x08, 0x41, 0xad, 0x180e, 0x200b, 0x2060, 0xfeff}) {
    EXPECT_FALSE(table.Is(other, kSpace)) << static_cast<uint32_t>(other);
  }
  EXPECT_TRUE(table.Is(U'\u00e9', kLetter));
  EXPECT_TRUE(table.Is(U'\u4e2d', kLetter));
  EXPECT_FALSE(table.Is(U'\u0301', kLetter));  // a combining accent
  EXPECT_FALSE(table.Is(U'\u2167', kLetter));  // VIII as one character is a number
  EXPECT_TRUE(table.Is(U'\u2167', kWordCharacter));
  EXPECT_TRUE(table.Is(U'_', kWordCharacter));
  EXPECT_FALSE(table.Is(U'-', kWordCharacter));
  EXPECT_TRUE(table.Is(U'\u0663', kDecimal));
  EXPECT_FALSE(table.Is(U'\u00b2', kDecimal));
  EXPECT_TRUE(table.Is(U'\u2028', kLineEnd));
  EXPECT_FALSE(table.Is(U'\u001f', kLineEnd));
}

TEST(CharacterTable, KnowsTheListsOfTheRules) {
  const CharacterTable& table = CharacterTable::Get();

  EXPECT_TRUE(table.Is('x', kSpacyAlpha));
  EXPECT_TRUE(table.Is('x', kSpacyLower));
  EXPECT_FALSE(table.Is('x', kSpacyUpper));
  EXPECT_TRUE(table.Is(U'\u4e2d', kSpacyLower));  // has no case: counts as both
  EXPECT_TRUE(table.Is(U'\u4e2d', kSpacyUpper));
  EXPECT_TRUE(table.Is('$', kPrefix));
  EXPECT_FALSE(table.Is('$', kSuffix));
  EXPECT_TRUE(table.Is('|', kBeforePeriod));  // by way of a bracket in spaCy's expression
  EXPECT_TRUE(table.Is('.', kTerminal));
  EXPECT_FALSE(table.Is(U'\u2026', kTerminal));
  EXPECT_TRUE(table.Is('\x01', kSymbol));
  EXPECT_FALSE(table.Is('\n', kSymbol));
  EXPECT_TRUE(table.Is(U'\U0001f642', kIcon));
}

TEST(CharacterTable, StripsAndFindsWhiteSpaceOfAnyWidth) {
  const CharacterTable& table = CharacterTable::Get();

  EXPECT_EQ(table.Strip("\u3000 \t a b\u00a0\u2003"), "a b");
  EXPECT_EQ(table.Strip(" \n\u2028"), "");
  EXPECT_EQ(table.Strip(""), "");
  EXPECT_EQ(table.FindSpace("\u20ac\u00e9x\u2003y"), 6u);
  EXPECT_EQ(table.FindSpace("\u20ac"), 3u);
}

}  // namespace
}  // namespace llmctl::data
