// Ids beside those that Hugging Face's tokenizers gave (make_expected.py), and beside byte pair encoding written down
// as plainly as it can be.
#include "worker/data/tokenizer/bpe_tokenizer.h"

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "common/base/rng.h"
#include "tests/unit/data/bpe/fixtures.h"

namespace llmctl::data {
namespace {

using ::testing::HasSubstr;

const char* const kPatterns[] = {"gpt2", "llama3", "qwen"};

std::vector<nlohmann::json> Expected(const std::string& pattern) {
  std::istringstream lines(FixtureText(pattern + "_expected.jsonl"));
  std::vector<nlohmann::json> rows;
  for (std::string line; std::getline(lines, line);) rows.push_back(nlohmann::json::parse(line));
  EXPECT_GT(rows.size(), 80u);
  return rows;
}

class Ours : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Patterns, Ours, ::testing::ValuesIn(kPatterns));

TEST_P(Ours, GivesTheIdsOfHuggingFace) {
  auto plain = FixtureTokenizer(GetParam());
  auto parsed = FixtureTokenizer(GetParam(), {.added_tokens = AddedTokensInText::kRecognized});

  std::unique_ptr<TextEncoder> encode_plain = plain->MakeEncoder(), encode_parsed = parsed->MakeEncoder();

  for (const nlohmann::json& row : Expected(GetParam())) {
    std::string text = row["text"];
    std::vector<int32_t> plain_ids, parsed_ids;
    encode_plain->Encode(text, plain_ids);
    encode_parsed->Encode(text, parsed_ids);
    EXPECT_EQ(plain_ids, row["plain"].get<std::vector<int32_t>>()) << text;
    EXPECT_EQ(parsed_ids, row["parsed"].get<std::vector<int32_t>>()) << text;
  }
}

TEST_P(Ours, GivesTheSameIdsWhateverTheEncoderHasSeen) {
  auto tokenizer = FixtureTokenizer(GetParam());
  std::unique_ptr<TextEncoder> encoder = tokenizer->MakeEncoder();
  std::vector<nlohmann::json> rows = Expected(GetParam());
  std::vector<int32_t> ids = {7};

  for (int round = 0; round < 2; ++round) {
    for (const nlohmann::json& row : rows) {
      ids.resize(1);
      encoder->Encode(row["text"].get<std::string>(), ids);
      std::vector<int32_t> expected = {7};
      expected.insert(expected.end(), row["plain"].begin(), row["plain"].end());
      EXPECT_EQ(ids, expected) << row["text"];
    }
  }
}

// Text of a few letters, so that merges happen, with spaces, digits, accents, emoji and stray bytes between.
std::string RandomText(SeededRng& rng, size_t characters) {
  static const char* const kParts[] = {"s", "h", "i", "p", "e", "t", "a", "n", "o", "r", " ", " ", "  ", "\n", "1", "2",
                                       ".", "'", "-", "\t", "the", "ships", "\xc3\xa9", "\xd0\xbb", "\xe6\xb8\xaf",
                                       "\xf0\x9f\x9a\xa2"};
  std::string text;
  for (size_t i = 0; i < characters; ++i) text += kParts[rng.Below(std::size(kParts))];
  return text;
}

std::string RandomBytes(SeededRng& rng, size_t bytes) {
  std::string text(bytes, '\0');
  for (char& c : text) c = static_cast<char>(rng.Below(256));
  return text;
}

// The definition, word for word: the lowest rank of all, the leftmost of equals, until there is none.
std::vector<int32_t> NaiveMerge(const TokenizerDefinition& definition, const std::string& piece) {
  std::vector<int32_t> ids;
  for (char byte : piece) {
    auto at = std::find(definition.tokens.begin(), definition.tokens.end(), std::string(1, byte));
    ids.push_back(static_cast<int32_t>(at - definition.tokens.begin()));
  }
  for (;;) {
    size_t best_rank = definition.merges.size(), best = 0;
    for (size_t i = 0; i + 1 < ids.size(); ++i) {
      for (size_t rank = 0; rank < best_rank; ++rank) {
        const Merge& merge = definition.merges[rank];
        if (merge.left != ids[i] || merge.right != ids[i + 1]) continue;
        best_rank = rank;
        best = i;
      }
    }
    if (best_rank == definition.merges.size()) return ids;
    ids[best] = definition.merges[best_rank].result;
    ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
}

TEST(BpeTokenizer, PiecesOfAnyLengthAreMergedAsTheDefinitionSays) {
  auto tokenizer = FixtureTokenizer("gpt2");
  std::unique_ptr<TextEncoder> encoder = tokenizer->MakeEncoder();
  SeededRng rng(11);

  for (size_t length : {1, 2, 3, 5, 8, 15, 16, 17, 40, 90, 95, 96, 97, 98, 130, 200}) {
    for (int round = 0; round < 4; ++round) {
      std::string piece(length, ' ');
      for (char& c : piece) c = "shipetanor"[rng.Below(10)];
      std::vector<int32_t> ids;
      encoder->Encode(piece, ids);
      EXPECT_EQ(ids, NaiveMerge(tokenizer->definition(), piece)) << piece;
    }
  }
}

TEST(BpeTokenizer, EveryTextComesBackFromItsIds) {
  SeededRng rng(12);
  for (const char* pattern : {"gpt2", "llama3"}) {
    auto tokenizer = FixtureTokenizer(pattern);
    std::unique_ptr<TextEncoder> encoder = tokenizer->MakeEncoder();
    for (int round = 0; round < 300; ++round) {
      std::string text = round % 2 == 0 ? RandomText(rng, rng.Below(200)) : RandomBytes(rng, rng.Below(200));
      std::vector<int32_t> ids;
      encoder->Encode(text, ids);
      EXPECT_EQ(tokenizer->Decode(ids), text);
    }
  }
}

// A search of the whole piece for each merge would take hours.
TEST(BpeTokenizer, ARunOfAMillionLettersIsNotQuadratic) {
  auto tokenizer = FixtureTokenizer("gpt2");
  std::string text(1000 * 1000, 'e');

  std::vector<int32_t> ids = Ids(*tokenizer, text);

  EXPECT_EQ(tokenizer->Decode(ids), text);
}

TEST(BpeTokenizer, ASmallCacheGivesTheIdsOfALargeOne) {
  auto large = FixtureTokenizer("gpt2");
  auto small = FixtureTokenizer("gpt2", {.encoder_cache = 1});  // two lines: pieces put each other out
  SeededRng rng(14);
  std::string text = RandomText(rng, 20000);

  EXPECT_EQ(Ids(*small, text), Ids(*large, text));
}

TEST(BpeTokenizer, ATextThatIsLongerThanABlockIsEncodedWhole) {
  auto tokenizer = FixtureTokenizer("llama3");
  SeededRng rng(13);
  std::string text = RandomText(rng, 30000) + std::string(9000, '-') + RandomText(rng, 100);

  EXPECT_EQ(tokenizer->Decode(Ids(*tokenizer, text)), text);
}

TEST(BpeTokenizer, ZeroBytesArePartOfAPiece) {
  auto tokenizer = FixtureTokenizer("gpt2");
  std::unique_ptr<TextEncoder> encoder = tokenizer->MakeEncoder();

  for (size_t length : {1, 2, 3, 1, 2, 3}) {
    std::vector<int32_t> ids;
    encoder->Encode(std::string(length, '\0'), ids);
    EXPECT_EQ(tokenizer->Decode(ids), std::string(length, '\0'));
  }
}

TEST(BpeTokenizer, SpecialsInTextArePlainTextUnlessAskedFor) {
  auto plain = FixtureTokenizer("gpt2");
  auto all_plain = FixtureTokenizer("gpt2", {.added_tokens = AddedTokensInText::kPlain});
  auto recognized = FixtureTokenizer("gpt2", {.added_tokens = AddedTokensInText::kRecognized});
  int32_t end = plain->end_of_document(), call = plain->vocabulary_size() - 2;
  std::string text = "a<|endoftext|>b<call>";
  auto has = [&](const BpeTokenizer& tokenizer, int32_t id) {
    std::vector<int32_t> ids = Ids(tokenizer, text);
    return std::find(ids.begin(), ids.end(), id) != ids.end();
  };

  EXPECT_FALSE(has(*plain, end));
  EXPECT_TRUE(has(*plain, call)) << "it is not special";
  EXPECT_FALSE(has(*all_plain, end));
  EXPECT_FALSE(has(*all_plain, call));
  EXPECT_TRUE(has(*recognized, end));
  EXPECT_EQ(plain->Decode(Ids(*plain, text)), text);
  EXPECT_EQ(recognized->Decode(Ids(*recognized, text)), "ab<call>") << "specials decode to nothing";
  EXPECT_NE(plain->digest(), recognized->digest());
  EXPECT_EQ(plain->digest(), FixtureTokenizer("gpt2")->digest());
}

TEST(BpeTokenizer, IdsThatThereAreNotDecodeToNothing) {
  auto tokenizer = FixtureTokenizer("gpt2");

  EXPECT_EQ(tokenizer->Decode({-1, tokenizer->vocabulary_size(), 1 << 30}), "");
}

TEST(BpeTokenizer, TheEndOfADocumentIsASpecialOfTheFile) {
  auto named = [](const std::string& name) {
    return ReadBpeTokenizer(FixturePath("qwen.json"), {.end_of_document = name});
  };

  EXPECT_EQ((*named(""))->end_of_document(), 600);
  EXPECT_EQ((*named("<|endoftext|>"))->end_of_document(), 600);
  EXPECT_EQ((*named(""))->vocabulary_size(), 603);
  EXPECT_THAT(std::string(named("</s>").status().message()),
              HasSubstr("there is no special token \"</s>\"; there are: <|endoftext|>"));
  EXPECT_TRUE(absl::IsNotFound(named("<call>").status())) << "it is not special";
}

TEST(BpeTokenizer, AFileWithoutAnEndOfDocumentIsRefused) {
  TokenizerDefinition definition = FixtureTokenizer("llama3")->definition();
  for (AddedToken& token : definition.added) {
    if (token.special) token.content = "<s>";
  }

  absl::Status status = BpeTokenizer::Create(definition, {}).status();

  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("there are: <s>"));
}

}  // namespace
}  // namespace llmctl::data
