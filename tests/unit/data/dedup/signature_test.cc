// Signatures: datatrove's bit by bit, the same from all kernels, and what the fast recipe takes for equal.
#include <cmath>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

#include "tests/unit/data/dedup/dedup_runs.h"
#include "worker/data/dedup/datatrove_shingles.h"
#include "worker/data/dedup/hash_functions.h"
#include "worker/data/dedup/shingle_set.h"
#include "worker/data/dedup/signer.h"
#include "worker/data/dedup/sketch.h"
#include "worker/data/dedup/spacy_words.h"
#include "worker/data/dedup/word_hasher.h"

namespace llmctl::data {
namespace {

using ::testing::HasSubstr;

NearSettings Datatrove() {
  NearSettings settings;
  settings.recipe = ShingleRecipe::kDatatrove;
  return settings;
}

// Texts of our own with what datatrove 0.10.1 makes of them on Python 3.11.
std::vector<nlohmann::json> Recorded() {
  std::ifstream file(LLM_DEDUP_FIXTURES "/datatrove_signatures.jsonl");
  std::vector<nlohmann::json> rows;
  for (std::string line; std::getline(file, line);) rows.push_back(nlohmann::json::parse(line));
  return rows;
}

std::vector<uint64_t> Numbers(const nlohmann::json& texts) {
  std::vector<uint64_t> out;
  for (const std::string text : texts) out.push_back(std::stoull(text));
  return out;
}

std::vector<uint64_t> Sign(const Signer& signer, absl::string_view text) {
  Signature signature;
  signer.Sign(text, signature);
  if (!signature.full) return {};
  signature.least.resize(signer.settings().bands * signer.settings().rows);
  return signature.least;
}

std::vector<uint64_t> Words(absl::string_view text) {
  static const FoldTable* const table = new FoldTable;
  std::vector<uint64_t> hashes(1000);
  WordHasher words(*table, text);
  hashes.resize(words.Next(hashes.data(), hashes.size()));
  return hashes;
}

TEST(DatatroveSignature, IsTheirsBitByBit) {
  std::vector<nlohmann::json> rows = Recorded();
  ASSERT_GE(rows.size(), 30u);
  for (const nlohmann::json& row : rows) {
    std::vector<std::string> words = row["words"];
    auto signer = Signer::Make(Datatrove(), [&](absl::string_view, std::vector<absl::string_view>& out) {
      out.insert(out.end(), words.begin(), words.end());
    });
    ASSERT_TRUE(signer.ok()) << signer.status();
    const std::string text = row["text"];
    EXPECT_EQ(SimplifyAsDatatrove(text), std::string(row["simplified"])) << text;
    EXPECT_EQ(Sign(**signer, text), Numbers(row["signature"])) << text;
  }
}

TEST(DatatroveSignature, IsTheirsWithOurOwnSplitterToo) {
  WordSplitter splitter;
  auto signer = *Signer::Make(Datatrove(), SpacyWords(splitter));
  for (const nlohmann::json& row : Recorded()) {
    const std::string text = row["text"];
    EXPECT_EQ(Sign(*signer, text), Numbers(row["signature"])) << text;
  }
}

// A document of several pieces has the shingles that cross their borders.
TEST(DatatroveSignature, DoesNotDependOnHowALongTextIsReadInPieces) {
  std::string text = TextMaker(3).Text(40000);
  ASSERT_GT(text.size(), 3u << 16);
  auto split = [](absl::string_view piece, std::vector<absl::string_view>& out) {
    for (absl::string_view word : absl::StrSplit(piece, ' ')) out.push_back(word);
  };
  ShingleScratch scratch;
  std::vector<uint64_t> in_pieces;
  int64_t words = DatatroveShingles(5, split).Read(text, scratch, [&](absl::Span<const uint64_t> shingles) {
    in_pieces.insert(in_pieces.end(), shingles.begin(), shingles.end());
  });

  std::vector<std::string> all = absl::StrSplit(text, ' ');
  std::vector<uint64_t> expected;
  for (size_t i = 0; i + 5 <= all.size(); ++i) {
    std::vector<std::string> five(all.begin() + i, all.begin() + i + 5);
    DatatroveShingles(5, split).Read(absl::StrJoin(five, " "), scratch,
                                     [&](absl::Span<const uint64_t> one) { expected.push_back(one[0]); });
  }
  EXPECT_EQ(words, 40000);
  EXPECT_EQ(in_pieces, expected);
}

TEST(DatatroveSignature, NeedsAWordSplitter) {
  EXPECT_THAT(std::string(Signer::Make(Datatrove()).status().message()), HasSubstr("word splitter"));
}

TEST(SignatureKernels, AllGiveTheSame) {
  for (NearSettings settings : {NearSettings{}, Datatrove()}) {
    for (int bands : {1, 3, 14}) {
      settings.bands = bands;
      HashFunctionTable table(settings);
      SeededRng rng(7);
      std::vector<uint64_t> words(1003);
      for (uint64_t& word : words) word = rng.Next();
      std::vector<std::vector<uint64_t>> least;
      const SignatureKernels* kernels[3];
      size_t available = AvailableSignatureKernels(kernels);
      for (size_t k = 0; k < available; ++k) {
        std::vector<uint64_t> shingles(words.size() - 4);
        kernels[k]->shingle(words.data(), shingles.size(), 5, shingles.data());
        least.emplace_back(table.padded_count(), kNoShingle);
        auto update = settings.recipe == ShingleRecipe::kFast ? kernels[k]->update : kernels[k]->update_mersenne;
        update(shingles.data(), shingles.size(), table.functions(), least.back().data());
        EXPECT_EQ(least.back(), least.front()) << kernels[k]->name;
      }
    }
  }
}

TEST(NearSettings, SayTheThresholdAndTheChanceAtPointEight) {
  // (1/14)^(1/8) and 1 - (1 - 0.8^8)^14.
  EXPECT_NEAR(Threshold({}), 0.719, 0.0005);
  EXPECT_NEAR(DetectionProbability({}, 0.8), 0.924, 0.0005);
  EXPECT_THAT(Describe({}), HasSubstr("14 bands x 8 rows of 5-word shingles, threshold 0.72, P(0.8) = 0.924"));
}

TEST(NearSettings, AllFaultsAreInOneMessage) {
  NearSettings settings;
  settings.bands = 0;
  settings.shingle_words = 65;
  settings.jaccard_min = 1.5;
  std::string message(Validate(settings).message());
  EXPECT_THAT(message, HasSubstr("bands: at least 1, found 0"));
  EXPECT_THAT(message, HasSubstr("shingle words: 1 to 64, found 65"));
  EXPECT_THAT(message, HasSubstr("least Jaccard"));
}

TEST(FastWords, AreFoldedAndParted) {
  EXPECT_EQ(Words("The Quick, brown-FOX"), Words("the quick brown fox"));
  EXPECT_EQ(Words("caf\u00e9 \u00c9t\u00c9"), Words("cafe ete"));
  EXPECT_EQ(Words("cafe\u0301"), Words("caf\u00e9"));                  // decomposed and composed
  EXPECT_EQ(Words("so\u00adft"), Words("soft"));                       // a soft hyphen is nothing
  EXPECT_EQ(Words("in 1999 and 12"), Words("in 7 and \u0664\u0665"));  // any number of digits of any script
  EXPECT_EQ(Words("abc123"), Words("ABC9"));
  EXPECT_NE(Words("abc123"), Words("abc"));
  EXPECT_EQ(Words("a\u2003b\u3000c\u2028d").size(), 4u);               // white space beyond ASCII
  EXPECT_EQ(Words("\u4eca\u5929x\u5929\u6c14").size(), 5u);            // a Han character is a word
  EXPECT_EQ(Words("\u00ab\u4eca\u3002\u00bb"), Words("\u4eca"));
  EXPECT_EQ(Words(" .,;!? \n").size(), 0u);
  EXPECT_EQ(Words("").size(), 0u);
}

TEST(FastWords, DoNotDependOnTheSizeOfTheBlocks) {
  const std::string text = "ab \u4eca\u5929\u6c14x 12\u5929 \u00e9\u0301, c\u5929";
  const std::vector<uint64_t> whole = Words(text);
  FoldTable table;
  for (size_t size : {1, 2, 3, 5}) {
    WordHasher words(table, text);
    std::vector<uint64_t> pieces, block(size);
    while (size_t found = words.Next(block.data(), size)) {
      pieces.insert(pieces.end(), block.begin(), block.begin() + found);
    }
    EXPECT_EQ(pieces, whole) << size;
  }
}

TEST(FastWords, TextThatIsCutWithinACharacterIsReadToItsEnd) {
  const std::string text = "\u5929";
  EXPECT_LE(Words(absl::string_view(text).substr(0, 1)).size(), 1u);
  EXPECT_LE(Words(absl::string_view(text).substr(0, 2)).size(), 1u);
}

TEST(FastShingles, DoNotDependOnBlocks) {
  FastShingles source(5, BestSignatureKernels());
  const std::string text = TextMaker(1).Text(5000);
  ShingleScratch scratch;
  std::vector<uint64_t> shingles;
  int64_t words = source.Read(text, scratch, [&](absl::Span<const uint64_t> block) {
    shingles.insert(shingles.end(), block.begin(), block.end());
  });
  EXPECT_EQ(words, 5000);
  std::vector<uint64_t> hashes(5000), expected(4996);
  FoldTable table;
  EXPECT_EQ(WordHasher(table, text).Next(hashes.data(), hashes.size()), 5000u);
  kSignaturePlain.shingle(hashes.data(), expected.size(), 5, expected.data());
  EXPECT_EQ(shingles, expected);
}

// Two texts that share so many of their words, in the same places, have a Jaccard similarity known from their shingles.
TEST(Signature, EstimatesAreWithinTheirStatisticalBounds) {
  NearSettings settings;
  settings.jaccard_min = 0.5;
  auto signer = *Signer::Make(settings);
  TextMaker maker(11);
  double squares = 0, deviation = 0, sketch_deviation = 0;
  int count = 0;
  for (int words : {30, 100, 1000}) {
    for (int round = 0; round < 60; ++round) {
      std::string text = maker.Text(words);
      std::string other = maker.Changed(text, 1 + round * words / 400);
      Signature a, b;
      signer->Sign(text, a);
      signer->Sign(other, b);
      double exact = JaccardOf(a.set.Sorted(), b.set.Sorted());
      double error = EstimateJaccard(absl::MakeSpan(a.least).first(112), absl::MakeSpan(b.least).first(112)) - exact;
      double sigma = std::sqrt(std::max(0.01, exact * (1 - exact)) / 112);
      EXPECT_LT(std::abs(error), 4.5 * sigma) << words << " words, exact " << exact;
      std::vector<uint8_t> x(SketchBytes(112)), y(SketchBytes(112));
      WriteSketch(absl::MakeSpan(a.least).first(112), a.shingles, absl::MakeSpan(x));
      WriteSketch(absl::MakeSpan(b.least).first(112), b.shingles, absl::MakeSpan(y));
      sketch_deviation += (EstimateSketchJaccard(x, y) - exact) / sigma;
      deviation += error / sigma;
      squares += error * error / (sigma * sigma);
      ++count;
    }
  }
  // Neither biased nor wider than theory.
  EXPECT_LT(std::abs(deviation / count), 4 / std::sqrt(count));
  EXPECT_LT(std::abs(sketch_deviation / count), 4 / std::sqrt(count));
  EXPECT_LT(squares / count, 1.5);
}

// Sets of shingles of a given overlap, straight into the kernel: the share of pairs that meet in a band is theory's.
TEST(Signature, PairsMeetAsOftenAsTheCurveSays) {
  NearSettings settings;
  HashFunctionTable table(settings);
  SeededRng rng(5);
  constexpr int kPairs = 400;
  for (double jaccard : {0.5, 0.7, 0.8, 0.9}) {
    constexpr int kUnion = 200;
    int met = 0;
    for (int pair = 0; pair < kPairs; ++pair) {
      std::vector<uint64_t> a, b;
      for (int i = 0; i < kUnion; ++i) {
        uint64_t shingle = rng.Next();
        bool both = i < jaccard * kUnion;
        if (both || i % 2 == 0) a.push_back(shingle);
        if (both || i % 2 == 1) b.push_back(shingle);
      }
      std::vector<uint64_t> x(table.padded_count(), kNoShingle), y = x;
      BestSignatureKernels().update(a.data(), a.size(), table.functions(), x.data());
      BestSignatureKernels().update(b.data(), b.size(), table.functions(), y.data());
      bool meet = false;
      for (int band = 0; band < settings.bands; ++band) {
        meet |= std::equal(x.begin() + band * 8, x.begin() + band * 8 + 8, y.begin() + band * 8);
      }
      met += meet;
    }
    double expected = DetectionProbability(settings, jaccard);
    double sigma = std::sqrt(std::max(expected * (1 - expected), 0.002) / kPairs);
    EXPECT_NEAR(met / double{kPairs}, expected, 4 * sigma) << jaccard;
  }
}

TEST(ShingleSet, JaccardIsExactBelowItsLimitAndNearAbove) {
  SeededRng rng(3);
  for (size_t shared : {0, 100, 100000}) {
    ShingleSet a, b;
    for (size_t i = 0; i < shared; ++i) {
      uint64_t shingle = rng.Next();
      a.Add({&shingle, 1});
      b.Add({&shingle, 1});
      b.Add({&shingle, 1});  // repeated ones count once
    }
    for (size_t i = 0; i < 300 + shared / 2; ++i) {
      uint64_t shingle = rng.Next();
      (i % 2 == 0 ? a : b).Add({&shingle, 1});
    }
    double expected = static_cast<double>(shared) / (shared + 300 + shared / 2);
    EXPECT_NEAR(JaccardOf(a.Sorted(), b.Sorted()), expected, shared > ShingleSet::kShinglesMax / 2 ? 0.01 : 1e-12);
  }
  EXPECT_EQ(JaccardOf({}, {}), 1);
}

}  // namespace
}  // namespace llmctl::data
