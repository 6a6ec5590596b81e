// The trainer against a model worked out by hand, against the formulas written down once more with maps, and against
// itself with so little memory that everything goes through files.
#include "worker/data/perplexity/ngram_trainer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

#include "common/base/file.h"
#include "common/base/rng.h"
#include "tests/unit/data/memory_files.h"
#include "tests/unit/temporary_directory.h"
#include "worker/data/perplexity/arpa_reader.h"

namespace llmctl::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

using Words = std::vector<std::string>;
using Lines = std::vector<std::string>;

struct Weighed {
  double log_probability;
  double log_backoff;
};
using Model = std::map<Words, Weighed>;

class NgramTrainerTest : public ::testing::Test {
 protected:
  NgramTrainReport Train(const Lines& lines, const NgramTrainSettings& settings) {
    auto trainer = NgramTrainer::Create(settings, *files_, directory_.path() + "/work");
    EXPECT_TRUE(trainer.ok()) << trainer.status();
    for (const std::string& line : lines) {
      std::vector<absl::string_view> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
      EXPECT_TRUE((*trainer)->AddLine(words).ok());
    }
    auto report = (*trainer)->WriteArpa(arpa_);
    EXPECT_TRUE(report.ok()) << report.status();
    return *report;
  }

  Model Read() const {
    auto reader = ArpaReader::OpenFile(arpa_);
    EXPECT_TRUE(reader.ok()) << reader.status();
    Model model;
    ArpaNgram gram;
    while (true) {
      auto more = reader->Next(gram);
      EXPECT_TRUE(more.ok()) << more.status();
      if (!more.ok() || !*more) return model;
      Words words(gram.words.begin(), gram.words.begin() + gram.order);
      EXPECT_TRUE(model.emplace(words, Weighed{gram.log_probability, gram.log_backoff}).second);
    }
  }

  TemporaryDirectory directory_;
  MemoryFiles memory_files_;
  LocalSpillFiles local_files_;
  SpillFiles* files_ = &memory_files_;
  const std::string arpa_ = directory_.path() + "/model.arpa";
};

void ExpectSame(const Model& model, const Model& expected, double tolerance) {
  ASSERT_EQ(model.size(), expected.size());
  for (const auto& [words, weighed] : expected) {
    auto found = model.find(words);
    ASSERT_NE(found, model.end()) << absl::StrJoin(words, " ");
    EXPECT_NEAR(found->second.log_probability, weighed.log_probability, tolerance) << absl::StrJoin(words, " ");
    EXPECT_NEAR(found->second.log_backoff, weighed.log_backoff, tolerance) << absl::StrJoin(words, " ");
  }
}

// Text: "c", "c", "a a", "b a a a". Order 2.
//
// Bigrams: <s> c 2, c </s> 2, a </s> 2, a a 3, <s> a 1, <s> b 1, b a 1.
//   t = 3, 3, 1, 0 with counts 1, 2, 3, 4.   Y = 3 / (3 + 2*3) = 1/3
//   D1 = 1 - 2 Y 3/3 = 1/3   D2 = 2 - 3 Y 1/3 = 5/3   D3 = 3 - 4 Y 0/1 = 3
// Words, by how many different words stand before them: a 3 (<s> a b), </s> 2 (c a), b 1 (<s>), c 1 (<s>).
//   t = 2, 1, 1, 0.   Y = 2 / (2 + 2*1) = 1/2
//   D1 = 1 - 2 Y 1/2 = 1/2   D2 = 2 - 3 Y 1/1 = 1/2   D3 = 3 - 4 Y 0/1 = 3
// Words: A = 7, b = (3 + 1/2 + 1/2 + 1/2) / 7 = 9/14, of which each of 5 (<unk> </s> a b c) has 9/70.
//   <unk> 9/70   a 0/7 + 9/70 = 9/70   b, c (1/2)/7 + 9/70 = 14/70 = 1/5   </s> (3/2)/7 + 9/70 = 24/70 = 12/35
// Behind <s>: A = 4, b = (5/3 + 1/3 + 1/3) / 4 = 7/12
//   c (1/3)/4 + 7/12 1/5 = 1/5   a (2/3)/4 + 7/12 9/70 = 29/120   b (2/3)/4 + 7/12 1/5 = 17/60
// Behind c: A = 2, b = (5/3) / 2 = 5/6        </s> (1/3)/2 + 5/6 12/35 = 19/42
// Behind a: A = 5, b = (3 + 5/3) / 5 = 14/15  a 0/5 + 14/15 9/70 = 3/25   </s> (1/3)/5 + 14/15 12/35 = 29/75
// Behind b: A = 1, b = 1/3                    a (2/3)/1 + 1/3 9/70 = 149/210
TEST_F(NgramTrainerTest, ModelIsTheOneWorkedOutByHand) {
  NgramTrainReport report = Train({"c", "c", "a a", "b a a a"}, {.order = 2});

  const double none = 1;
  std::map<Words, std::pair<double, double>> by_hand = {
      {{"<unk>"}, {9.0 / 70, none}},     {{"<s>"}, {1, 7.0 / 12}},          {{"</s>"}, {12.0 / 35, none}},
      {{"a"}, {9.0 / 70, 14.0 / 15}},    {{"b"}, {1.0 / 5, 1.0 / 3}},       {{"c"}, {1.0 / 5, 5.0 / 6}},
      {{"<s>", "a"}, {29.0 / 120, none}}, {{"<s>", "b"}, {17.0 / 60, none}}, {{"<s>", "c"}, {1.0 / 5, none}},
      {{"c", "</s>"}, {19.0 / 42, none}}, {{"a", "a"}, {3.0 / 25, none}},    {{"a", "</s>"}, {29.0 / 75, none}},
      {{"b", "a"}, {149.0 / 210, none}}};
  Model expected;
  for (const auto& [words, numbers] : by_hand) {
    expected[words] = {std::log10(numbers.first), std::log10(numbers.second)};
  }
  ExpectSame(Read(), expected, 1e-6);
  EXPECT_THAT(report.warnings, IsEmpty());
  EXPECT_EQ(report.words, 8u);
  EXPECT_EQ(report.vocabulary, 6u);
  EXPECT_NEAR(report.orders[0].discounts[0], 0.5, 1e-12);
  EXPECT_NEAR(report.orders[0].discounts[1], 0.5, 1e-12);
  EXPECT_NEAR(report.orders[0].discounts[2], 3, 1e-12);
  EXPECT_NEAR(report.orders[1].discounts[0], 1.0 / 3, 1e-12);
  EXPECT_NEAR(report.orders[1].discounts[1], 5.0 / 3, 1e-12);
  EXPECT_NEAR(report.orders[1].discounts[2], 3, 1e-12);
}

TEST_F(NgramTrainerTest, FileIsWrittenAsItShouldBe) {
  files_ = &local_files_;
  Train({"a a", "a"}, {.order = 1});
  // a 3, </s> 2: no n-gram with count 1, so D2 = 1 and D3 = 1.5. A = 5, b = 2.5 / 5, a third of it each:
  // <unk> 1/6, </s> 1/5 + 1/6, a 3/10 + 1/6.
  EXPECT_EQ(*ReadFile(arpa_),
            "\\data\\\nngram 1=4\n\n\\1-grams:\n-0.7781513\t<unk>\n0\t<s>\n-0.43572858\t</s>\n-0.3309932\ta\n\n\\end\\\n");
  EXPECT_FALSE(std::filesystem::exists(directory_.path() + "/work"));
}

// The formulas of ngram_trainer.h, on maps.
class BruteForce {
 public:
  BruteForce(const Lines& lines, const NgramTrainSettings& settings) : settings_(settings) {
    for (const std::string& line : lines) {
      Words words = absl::StrSplit(absl::StrCat("<s> ", line, " </s>"), ' ', absl::SkipEmpty());
      for (size_t at = 0; at < words.size(); ++at) {
        for (size_t order = 1; order <= static_cast<size_t>(settings.order) && order <= at + 1; ++order) {
          Words gram(words.begin() + at + 1 - order, words.begin() + at + 1);
          if (gram == Words{"<s>"}) continue;
          ++counts_[gram];
          if (order <= at) before_[gram].insert(words[at - order]);
          vocabulary_.insert(words[at]);
        }
      }
    }
    for (int order = 1; order <= settings.order; ++order) discounts_.push_back(DiscountsOf(order));
  }

  Model Build() const {
    Model model;
    for (const auto& [gram, count] : counts_) {
      if (!Pruned(gram)) model[gram] = {std::log10(Probability(gram)), LogWeight(gram)};
    }
    model[{"<unk>"}] = {std::log10(Probability({"<unk>"})), 0};
    model[{"<s>"}] = {0, LogWeight({"<s>"})};
    return model;
  }

  bool fallback(int order) const { return fallbacks_.contains(order); }

 private:
  uint64_t Adjusted(const Words& gram) const {
    const bool raw = static_cast<int>(gram.size()) == settings_.order || gram[0] == "<s>";
    return raw ? counts_.at(gram) : before_.at(gram).size();
  }
  bool Pruned(const Words& gram) const {
    const uint64_t threshold = settings_.prune[std::min(gram.size(), settings_.prune.size()) - 1];
    return gram.size() > 1 && counts_.at(gram) <= threshold;
  }
  std::array<double, 3> DiscountsOf(int order) {
    double t[5] = {};
    for (const auto& [gram, count] : counts_) {
      if (static_cast<int>(gram.size()) == order && Adjusted(gram) <= 4) ++t[Adjusted(gram)];
    }
    std::array<double, 3> discounts;
    for (int k = 1; k <= 3; ++k) {
      discounts[k - 1] = k - (k + 1) * t[1] / (t[1] + 2 * t[2]) * t[k + 1] / t[k];
      if (!(t[k] > 0 && discounts[k - 1] >= 0 && discounts[k - 1] <= k)) fallbacks_.insert(order);
    }
    return fallbacks_.contains(order) ? settings_.discount_fallback : discounts;
  }
  double Discount(const Words& gram) const {
    return discounts_[gram.size() - 1][std::min<uint64_t>(Adjusted(gram), 3) - 1];
  }
  // Sum and back-off weight of a context.
  std::pair<double, double> ContextOf(const Words& context) const {
    double sum = 0, left = 0;
    for (const auto& [gram, count] : counts_) {
      if (gram.size() != context.size() + 1 || !std::equal(context.begin(), context.end(), gram.begin())) continue;
      sum += Adjusted(gram);
      left += Pruned(gram) ? Adjusted(gram) : Discount(gram);
    }
    return {sum, sum == 0 ? 1 : left / sum};
  }
  double LogWeight(const Words& gram) const {
    return static_cast<int>(gram.size()) == settings_.order ? 0 : std::log10(ContextOf(gram).second);
  }
  double Probability(const Words& gram) const {
    auto [sum, weight] = ContextOf(Words(gram.begin(), gram.end() - 1));
    const double own = counts_.contains(gram) ? (Adjusted(gram) - Discount(gram)) / sum : 0;
    if (gram.size() > 1) return own + weight * Probability(Words(gram.begin() + 1, gram.end()));
    if (settings_.interpolate_unigrams) return own + weight / (vocabulary_.size() + 1);
    return gram[0] == "<unk>" ? weight : own;
  }

  const NgramTrainSettings settings_;
  std::map<Words, uint64_t> counts_;
  std::map<Words, std::set<std::string>> before_;
  std::set<std::string> vocabulary_;  // with </s>
  std::set<int> fallbacks_;
  std::vector<std::array<double, 3>> discounts_;
};

// Few words, so that long n-grams repeat; some lines are empty, some words rare.
Lines RandomLines(SeededRng& rng, int lines) {
  Lines out;
  for (int i = 0; i < lines; ++i) {
    Words words;
    for (uint64_t n = rng.Below(9); n > 0; --n) {
      uint64_t most = 1 + rng.Below(12);
      words.push_back(absl::StrCat("w", rng.Below(most)));
    }
    out.push_back(absl::StrJoin(words, " "));
  }
  out.push_back("w0");
  return out;
}

TEST_F(NgramTrainerTest, EveryOrderFollowsTheFormulas) {
  SeededRng rng(7);
  int estimated = 0, fallbacks = 0;
  for (int order = 1; order <= 6; ++order) {
    for (bool interpolate : {true, false}) {
      Lines lines = RandomLines(rng, 50);
      NgramTrainSettings settings = {.order = order, .interpolate_unigrams = interpolate};
      NgramTrainReport report = Train(lines, settings);
      BruteForce brute(lines, settings);
      ExpectSame(Read(), brute.Build(), 2e-6);
      for (int n = 1; n <= order; ++n) {
        EXPECT_EQ(report.orders[n - 1].fallback, brute.fallback(n));
        ++(report.orders[n - 1].fallback ? fallbacks : estimated);
      }
      EXPECT_EQ(report.warnings.empty(), std::none_of(report.orders.begin(), report.orders.end(),
                                                      [](const NgramOrderReport& o) { return o.fallback; }));
    }
  }
  EXPECT_GT(estimated, 5) << fallbacks;
  EXPECT_GT(fallbacks, 2) << estimated;
}

TEST_F(NgramTrainerTest, PrunedNgramsLeaveTheirShareToTheBackOff) {
  SeededRng rng(11);
  for (std::vector<uint64_t> prune : {std::vector<uint64_t>{0, 1}, {0, 0, 2}, {0, 1, 1, 3}}) {
    Lines lines = RandomLines(rng, 60);
    NgramTrainSettings settings = {.order = 4, .prune = prune};
    NgramTrainReport report = Train(lines, settings);
    ExpectSame(Read(), BruteForce(lines, settings).Build(), 2e-6);
    EXPECT_LT(report.orders[3].kept, report.orders[3].distinct);
  }
}

TEST_F(NgramTrainerTest, ProbabilitiesBehindAContextSumToOne) {
  SeededRng rng(3);
  Train(RandomLines(rng, 60), {.order = 3});
  Model model = Read();
  auto probability = [&](Words gram) {
    double log = 0;
    while (true) {
      auto found = model.find(gram);
      if (found != model.end()) return std::pow(10, log + found->second.log_probability);
      auto context = model.find(Words(gram.begin(), gram.end() - 1));
      if (context != model.end()) log += context->second.log_backoff;
      gram.erase(gram.begin());
    }
  };
  for (const auto& [context, weighed] : model) {
    if (context.size() > 2 || context.back() == "</s>" || context.back() == "<unk>") continue;
    double sum = 0;
    for (const auto& [gram, unused] : model) {
      if (gram.size() != 1 || gram[0] == "<s>") continue;
      Words longer = context;
      longer.push_back(gram[0]);
      sum += probability(longer);
    }
    EXPECT_NEAR(sum, 1, 1e-5) << absl::StrJoin(context, " ");
  }
}

TEST_F(NgramTrainerTest, MemoryChangesNothing) {
  files_ = &local_files_;
  // A sorter's share is less than its n-grams need: runs go to files and are merged.
  SeededRng rng(5);
  Lines lines;
  for (int i = 0; i < 32000; ++i) {
    lines.push_back(absl::StrCat("a", rng.Below(3000), " b", rng.Below(50), " a", rng.Below(300), " c", i % 7));
  }
  Train(lines, {.order = 5, .memory_bytes = uint64_t{16} << 20});
  std::string little = *ReadFile(arpa_);
  Train(lines, {.order = 5, .memory_bytes = uint64_t{1} << 30});
  EXPECT_TRUE(little == *ReadFile(arpa_));
}

TEST_F(NgramTrainerTest, CompressedFileHoldsTheSame) {
  Train({"c", "c", "a a", "b a a a"}, {.order = 2});
  Model plain = Read();
  auto trainer = NgramTrainer::Create({.order = 2}, *files_, directory_.path() + "/work");
  using Line = std::vector<absl::string_view>;
  for (const Line& line : std::vector<Line>{{"c"}, {"c"}, {"a", "a"}, {"b", "a", "a", "a"}}) {
    ASSERT_TRUE((*trainer)->AddLine(line).ok());
  }
  ASSERT_TRUE((*trainer)->WriteArpa(arpa_ + ".gz").ok());
  EXPECT_EQ(ReadFile(arpa_ + ".gz")->substr(0, 2), "\x1f\x8b");
  std::filesystem::rename(arpa_ + ".gz", arpa_);
  ExpectSame(Read(), plain, 0);
}

TEST_F(NgramTrainerTest, DocumentsAreTrainedOnLineByLine) {
  Train({"ein wort", "noch eins 00"}, {.order = 3});
  std::string expected = *ReadFile(arpa_);
  std::vector<std::string> documents = {"Ein Wort\n\n", "noch eins 12"};
  std::set<std::string> steps;
  size_t at = 0;
  auto report = TrainNgramModel(
      {.path = arpa_, .folder = directory_.path() + "/work", .training = {.order = 3}}, *files_,
      [&](std::string& document) -> absl::StatusOr<bool> {
        if (at == documents.size()) return false;
        document = documents[at++];
        return true;
      },
      [&](const NgramTrainProgress& progress) { steps.insert(std::string(progress.step)); });
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(*ReadFile(arpa_), expected);
  EXPECT_TRUE(steps.contains("smooth"));
}

TEST_F(NgramTrainerTest, ErrorOfTheSourceEndsTheTraining) {
  files_ = &local_files_;
  auto report = TrainNgramModel({.path = arpa_, .folder = directory_.path() + "/work"}, *files_,
                                [](std::string&) { return absl::DataLossError("no more"); });
  EXPECT_EQ(report.status().message(), "no more");
  EXPECT_TRUE(std::filesystem::is_empty(directory_.path()));
}

TEST_F(NgramTrainerTest, SpecialWordsInTheTextAreSkippedAndCounted) {
  NgramTrainReport report = Train({"a <s> b", "<unk> </s> a"}, {.order = 2});
  EXPECT_EQ(report.specials_skipped, 3u);
  EXPECT_EQ(report.words, 3u);
  EXPECT_TRUE(Read().contains({"a", "b"}));
}

TEST_F(NgramTrainerTest, FallBackIsSaidLoudly) {
  NgramTrainReport report = Train({"a b"}, {.order = 2});
  ASSERT_THAT(report.warnings, SizeIs(2));
  EXPECT_THAT(report.warnings[1], HasSubstr("2-grams: no Kneser-Ney discounts follow from 3, 0, 0 and 0 of them"));
  EXPECT_THAT(report.orders[1].discounts, ElementsAre(0.5, 1, 1.5));
}

TEST_F(NgramTrainerTest, NoTextIsAnErrorAndLeavesNothing) {
  files_ = &local_files_;
  auto trainer = NgramTrainer::Create({}, *files_, directory_.path() + "/work");
  EXPECT_EQ((*trainer)->WriteArpa(arpa_).status().code(), absl::StatusCode::kFailedPrecondition);
  trainer->reset();
  EXPECT_TRUE(std::filesystem::is_empty(directory_.path()));
}

TEST_F(NgramTrainerTest, VocabularyBeyondItsMemoryIsRefused) {
  auto trainer = NgramTrainer::Create({.memory_bytes = uint64_t{16} << 20}, *files_, directory_.path() + "/work");
  absl::Status status;
  const std::string long_word(1 << 20, 'x');
  for (int i = 0; i < 9 && status.ok(); ++i) {
    std::string word = absl::StrCat(i, long_word);
    status = (*trainer)->AddLine({absl::string_view(word)});
  }
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(status.message(), HasSubstr("the vocabulary of 11 words"));
}

TEST(NgramTrainSettings, AllFaultsAreInOneMessage) {
  NgramTrainSettings settings = {.order = 7, .prune = {1, 0}, .discount_fallback = {2, 1, 1}, .memory_bytes = 1};
  std::string message(settings.Validate().message());
  for (const char* fault : {"order is 7", "prune: expected 0 first", "below that of a lower order",
                            "discount_fallback: 2 for count 1", "memory is 1 bytes"}) {
    EXPECT_THAT(message, HasSubstr(fault));
  }
}

}  // namespace
}  // namespace llmctl::data
