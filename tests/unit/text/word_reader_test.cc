#include "worker/data/text/word_reader.h"

#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "common/base/rng.h"

namespace llmctl::data {
namespace {

using testing::ElementsAre;

constexpr int64_t kAll = std::numeric_limits<int64_t>::max();

const WordSplitter& Splitter() {
  static const WordSplitter* const splitter = new WordSplitter();
  return *splitter;
}

std::vector<std::string> WordsOf(WordReader& reader, absl::string_view text) {
  std::vector<uint32_t> ids;
  reader.Begin();
  reader.ReadWords(text, ids);
  std::vector<std::string> words;
  for (uint32_t id : ids) words.emplace_back(reader.word(id).text);
  return words;
}

std::vector<std::string> WordsOf(absl::string_view text) {
  WordReader reader(Splitter(), {});
  return WordsOf(reader, text);
}

int64_t SentencesOf(absl::string_view text, int64_t at_most = kAll) {
  return WordReader(Splitter(), {}).CountSentences(text, at_most);
}

// Odd pieces next to each other: what a text may be made of, and what the rules look at.
std::string RandomText(SeededRng& rng) {
  static const char* const pieces[] = {
      "the", "don't", "cannot", "A", "9", ".", "..", "...", "\u2026", ",", ":", ")", "(", "-", "--", "\u2014", "'",
      "'s", "\u2019s", "\"", "/", "$", "US$", "5km", "%", "+", "#", "_", "\u4e2d\u6587", "\u3002", "e.g.", "x@y.org",
      "http://a.bc", "\u00e9", "\u0301", "\U0001f642", " ", " ", " ", "  ", "\n", "\n\n", "\t", "\u3000", "\u00b0C.",
      ":-)", "<3", "10a.m.", "Mr.", "\x01", "\u200b"};
  std::string text;
  for (uint64_t i = rng.Below(40); i > 0; --i) text += pieces[rng.Below(std::size(pieces))];
  return text;
}

std::string WithoutSpace(absl::string_view text) {
  const CharacterTable& table = CharacterTable::Get();
  std::string out;
  for (text = table.StripStart(text); !text.empty(); text = table.StripStart(text)) {
    size_t size = table.FindSpace(text);
    out.append(text.data(), size);
    text.remove_prefix(size);
  }
  return out;
}

// spacy_words.jsonl: text, words and number of sentences, as spaCy 3.8.18 splits them through datatrove 0.10.1.
TEST(WordReader, SplitsAsSpacyDoes) {
  std::ifstream rows(LLM_FIXTURES "/spacy_words.jsonl");
  WordReader reader(Splitter(), {});
  std::string line;
  int count = 0;

  for (; std::getline(rows, line); ++count) {
    nlohmann::json row = nlohmann::json::parse(line);
    std::string text = row["text"];
    EXPECT_EQ(WordsOf(reader, text), row["words"].get<std::vector<std::string>>()) << text;
    EXPECT_EQ(reader.CountSentences(text, kAll), row["sentences"].get<int64_t>()) << text;
  }

  EXPECT_EQ(count, 285);
}

TEST(WordReader, JoinsSpecialCasesOfNeighbours) {
  EXPECT_THAT(WordsOf("so:) well"), ElementsAre("so", ":)", "well"));
  EXPECT_THAT(WordsOf("so: ) well"), ElementsAre("so", ":", ")", "well"));
  // The longest place is looked at first though white space spoils it; what it touches is left alone.
  EXPECT_THAT(WordsOf("so:) ) well"), ElementsAre("so", ":", ")", ")", "well"));
  EXPECT_THAT(WordsOf("(25°C.)"), ElementsAre("(", "25", "°", "C", ".", ")"));
}

TEST(WordReader, TextWithoutWordsHasNone) {
  EXPECT_THAT(WordsOf(""), ElementsAre());
  EXPECT_THAT(WordsOf(" \n\t\u3000"), ElementsAre());
  EXPECT_EQ(SentencesOf(""), 1);
  EXPECT_EQ(SentencesOf("  "), 1);
}

TEST(WordReader, CountsSentencesUpToALimit) {
  EXPECT_EQ(SentencesOf("One. Two! Three? Four"), 4);
  EXPECT_EQ(SentencesOf("One. Two! Three? Four", 2), 2);
  EXPECT_EQ(SentencesOf("Wait ... what ?! (No.) Yes"), 3);
  EXPECT_EQ(SentencesOf("One.\nTwo."), 2);
}

TEST(WordReader, DescribesItsWords) {
  WordReader reader(Splitter(), {.marked_words = {"of", "the"}});
  std::vector<uint32_t> ids;

  reader.ReadWords("the caf\u00e9 ! x9 the", ids);

  ASSERT_EQ(ids.size(), 5u);
  EXPECT_EQ(ids[0], ids[4]);
  EXPECT_EQ(reader.word(ids[0]).mark, 2);
  EXPECT_EQ(reader.word(ids[1]).characters, 4u);
  EXPECT_EQ(reader.word(ids[1]).mark, 0);
  EXPECT_EQ(reader.word(ids[1]).traits, Word::kHasLetter | Word::kHasNonSymbol);
  EXPECT_EQ(reader.word(ids[2]).traits, Word::kEndsSentence | Word::kIsPunctuation);
}

TEST(WordReader, HashesOfWordsPutTogetherAreThoseOfTheText) {
  WordReader reader(Splitter(), {});
  std::vector<uint32_t> ids;

  reader.ReadWords("ab c a bc abc", ids);

  auto together = [&](const Word& a, const Word& b) {
    return AddModPrime(MultiplyModPrime(a.hash, b.power), b.hash);
  };
  ASSERT_EQ(ids.size(), 5u);
  EXPECT_EQ(together(reader.word(ids[0]), reader.word(ids[1])), reader.word(ids[4]).hash);
  EXPECT_EQ(together(reader.word(ids[2]), reader.word(ids[3])), reader.word(ids[4]).hash);
  EXPECT_NE(reader.word(ids[0]).hash, reader.word(ids[3]).hash);
}

// Words are the text without its white space, whatever it is made of, and what was read before makes no difference.
TEST(WordReader, RandomTextsKeepAllTheirCharactersAndNeedNoMemory) {
  SeededRng rng(20240607);
  WordReader forgetful(Splitter(), {.bytes_max = 0});
  WordReader remembering(Splitter(), {});

  for (int i = 0; i < 1500; ++i) {
    std::string text = RandomText(rng);
    std::vector<std::string> words = WordsOf(remembering, text);
    EXPECT_EQ(words, WordsOf(forgetful, text)) << i << ": " << text;
    std::string together;
    for (const std::string& word : words) together += word;
    EXPECT_EQ(together, WithoutSpace(text)) << i << ": " << text;
  }
}

TEST(WordReader, StaysWithinItsBudgetBetweenDocuments) {
  WordReader reader(Splitter(), {.bytes_max = 20000});

  for (int i = 0; i < 200; ++i) {
    std::string text;
    for (int j = 0; j < 20; ++j) text += absl::StrCat("word", i, "x", j, " ");
    WordsOf(reader, text);
    EXPECT_LT(reader.bytes(), 20000u + 20 * 400);
  }
}

// A text of one chunk, of one mark, of one join: nothing may take more than linear time.
TEST(WordReader, OddLongTextsAreNoLongerThanTheirLength) {
  constexpr size_t kBytes = 1 << 15;
  for (absl::string_view unit : {"(", ".", ":)", "a-", "a.", "\u4e2d", "x ", ": ) ", "'s", "5km", "9+"}) {
    std::string text;
    while (text.size() < kBytes) absl::StrAppend(&text, unit);
    EXPECT_FALSE(WordsOf(text).empty()) << unit;
  }
}

}  // namespace
}  // namespace llmctl::data
