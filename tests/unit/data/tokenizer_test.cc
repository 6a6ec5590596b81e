#include "worker/data/tokenizer/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace llmctl::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ByteTokenizer, IdsAreBytes) {
  auto tokenizer = MakeTokenizer("byte");
  ASSERT_TRUE(tokenizer.ok());
  std::vector<int32_t> tokens = {7};

  (*tokenizer)->Encode("a\xc3\xa9", tokens);

  EXPECT_THAT(tokens, ElementsAre(7, 97, 0xc3, 0xa9));
  EXPECT_EQ((*tokenizer)->vocabulary_size(), 260);
  EXPECT_EQ((*tokenizer)->end_of_document(), 256);
}

TEST(ByteTokenizer, EveryStringRoundTripsAndSpecialsDecodeToNothing) {
  auto tokenizer = *MakeTokenizer("byte");
  std::string all;
  for (int c = 0; c < 256; ++c) all.push_back(static_cast<char>(c));
  std::vector<int32_t> tokens;
  tokenizer->Encode(all, tokens);
  tokens.insert(tokens.begin() + 5, {256, 257, 258, 259});

  EXPECT_EQ(tokenizer->Decode(tokens), all);
}

TEST(MakeTokenizer, APathOfAJsonFileIsReadAsBpe) {
  absl::Status status = MakeTokenizer("no/such/tokenizer.json").status();

  EXPECT_TRUE(absl::IsNotFound(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("no/such/tokenizer.json"));
}

TEST(MakeTokenizer, AnUnknownNameListsTheKnownOnes) {
  absl::Status status = MakeTokenizer("bpe").status();

  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("there is: byte, or the path of a tokenizer.json"));
}

}  // namespace
}  // namespace llmctl::data
