#include "worker/data/shards/sampler.h"

#include <cmath>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace llmctl::data {
namespace {

TEST(Permute, IsABijectionOfEverySize) {
  for (uint64_t n : {1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 63, 64, 65, 100, 255, 256, 257, 1000, 4095, 4097, 65537}) {
    std::vector<bool> seen(n);
    for (uint64_t i = 0; i < n; ++i) {
      uint64_t at = Permute(i, n, 42, 3);
      ASSERT_LT(at, n);
      ASSERT_FALSE(seen[at]) << "n " << n << " i " << i;
      seen[at] = true;
    }
  }
}

TEST(Permute, WorksOnSizesNearTheLimit) {
  uint64_t n = (uint64_t{1} << 62) - 5;
  std::set<uint64_t> seen;
  for (uint64_t i = 0; i < 1000; ++i) seen.insert(Permute(i, n, 1, 0));
  EXPECT_EQ(seen.size(), 1000u);
  EXPECT_LT(*seen.rbegin(), n);
}

TEST(Permute, EpochsAndSeedsGiveUnlikeOrders) {
  constexpr int kSize = 1000;
  int same_epoch = 0, same_seed = 0, fixed = 0;
  for (int i = 0; i < kSize; ++i) {
    uint64_t at = Permute(i, kSize, 1, 0);
    same_epoch += at == Permute(i, kSize, 1, 1);
    same_seed += at == Permute(i, kSize, 2, 0);
    fixed += at == static_cast<uint64_t>(i);
  }
  // One in expectation; ten has a chance of 1e-7.
  EXPECT_LT(same_epoch, 10);
  EXPECT_LT(same_seed, 10);
  EXPECT_LT(fixed, 10);
}

TEST(Permute, SpreadsNeighboursOverTheWholeRange) {
  // Where the first tenth of the samples goes: each tenth of the range should get a tenth of them.
  constexpr int kSize = 10000;
  std::vector<int> tenths(10);
  for (int i = 0; i < kSize / 10; ++i) ++tenths[Permute(i, kSize, 7, 0) * 10 / kSize];
  for (int count : tenths) {
    EXPECT_GT(count, 60);  // 100 expected, standard deviation 9
    EXPECT_LT(count, 140);
  }
}

SamplerSpec Spec(int64_t tokens, bool shuffle = true) { return {"digest", tokens, 8, 5, shuffle}; }

int64_t Start(const SamplerSpec& spec, int64_t index) { return Sampler::Create(spec)->Start(index); }

TEST(Sampler, WindowsOverlapByOneToken) {
  EXPECT_EQ(WindowCount(Spec(0)), 0);
  EXPECT_EQ(WindowCount(Spec(8)), 0);
  EXPECT_EQ(WindowCount(Spec(9)), 1);
  EXPECT_EQ(WindowCount(Spec(16)), 1);
  EXPECT_EQ(WindowCount(Spec(17)), 2);
}

TEST(Sampler, AnEpochVisitsEveryWindowOnceInsideTheStream) {
  SamplerSpec spec = Spec(1003);
  int64_t n = WindowCount(spec);
  for (int epoch = 0; epoch < 3; ++epoch) {
    std::set<int64_t> starts;
    for (int64_t i = 0; i < n; ++i) starts.insert(Start(spec, epoch * n + i));
    EXPECT_EQ(static_cast<int64_t>(starts.size()), n);
    EXPECT_EQ(*starts.begin(), 0);
    EXPECT_LE(*starts.rbegin() + spec.sequence_length + 1, spec.tokens);
  }
}

TEST(Sampler, WithoutShufflingWindowsComeInStreamOrder) {
  SamplerSpec spec = Spec(33, /*shuffle=*/false);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(Start(spec, i), 8 * i);
  EXPECT_EQ(Start(spec, 4), 0);
}

TEST(Sampler, OrderIsTheSameForEver) {
  // Checkpoints record sample indices: a change of these values would change the data of a resumed job, and must
  // come with a new version in SamplerDigest.
  SamplerSpec spec = Spec(8001);
  std::vector<int64_t> starts;
  for (int i : {0, 1, 2, 999, 1000}) starts.push_back(Start(spec, i) / 8);
  EXPECT_EQ(starts, (std::vector<int64_t>{484, 546, 544, 613, 673}));
}

// Three groups of 10, 40 and 5 windows of 8 tokens.
SamplerSpec GroupedSpec() {
  SamplerSpec spec = Spec(440 + 3);
  spec.groups = {{"a", 0, 81, 81, 0.5}, {"b", 81, 402, 321, 0.3}, {"c", 402, 443, 41, 0.2}};
  return spec;
}

TEST(Sampler, GroupsComeAtTheirWeightsAndEachIsSeenWholeBeforeAgain) {
  SamplerSpec spec = GroupedSpec();
  Sampler sampler = *Sampler::Create(spec);
  EXPECT_EQ(sampler.windows(), 55);
  std::vector<std::vector<int64_t>> seen(3);
  for (int64_t i = 0; i < 400; ++i) {
    int64_t start = sampler.Start(i);
    int g = start < 81 ? 0 : start < 402 ? 1 : 2;
    seen[g].push_back(start);
    EXPECT_EQ((start - spec.groups[g].begin) % 8, 0);
    EXPECT_LE(start + 9, spec.groups[g].end) << "a window reaches over the end of its group";
    for (int other = 0; other < 3; ++other) {
      double share = spec.groups[other].weight * static_cast<double>(i + 1);
      EXPECT_LT(std::abs(static_cast<double>(seen[other].size()) - share), 1);
    }
  }
  for (auto [g, windows] : {std::pair{0, 10}, {1, 40}, {2, 5}}) {
    for (size_t epoch = 0; (epoch + 1) * windows <= seen[g].size(); ++epoch) {
      std::set<int64_t> starts(seen[g].begin() + epoch * windows, seen[g].begin() + (epoch + 1) * windows);
      EXPECT_EQ(starts.size(), static_cast<size_t>(windows)) << "group " << g << " epoch " << epoch;
    }
  }
}

TEST(Sampler, TheOrderInsideAGroupDoesNotDependOnTheOthers) {
  SamplerSpec alone = GroupedSpec();
  alone.groups.erase(alone.groups.begin());
  auto of_b = [](const SamplerSpec& spec) {
    Sampler sampler = *Sampler::Create(spec);
    std::vector<int64_t> out;
    for (int64_t i = 0; out.size() < 30; ++i) {
      int64_t start = sampler.Start(i);
      if (start >= 81 && start < 402) out.push_back(start);
    }
    return out;
  };
  EXPECT_EQ(of_b(alone), of_b(GroupedSpec()));
}

TEST(Sampler, RowsAreDrawnSoThatTokensHaveTheWeights) {
  // Rows of the first group are half empty: it needs two rows for one of the second's.
  SamplerSpec spec = Spec(40 + 80);
  spec.rows = 20;
  spec.groups = {{"a", 0, 10, 40, 0.5}, {"b", 10, 20, 80, 0.5}};
  Sampler sampler = *Sampler::Create(spec);
  int first = 0;
  for (int64_t i = 0; i < 300; ++i) first += sampler.Start(i) < 10;
  EXPECT_EQ(first, 200);
}

TEST(Sampler, AGroupThatCannotBeDrawnFromIsNamed) {
  SamplerSpec spec = GroupedSpec();
  spec.groups[2].end = 408;
  EXPECT_THAT(std::string(Sampler::Create(spec).status().message()), ::testing::HasSubstr("group c has a weight"));
  spec.groups[2].weight = 0;
  EXPECT_TRUE(Sampler::Create(spec).ok());
  EXPECT_THAT(std::string(Sampler::Create(Spec(8)).status().message()),
              ::testing::HasSubstr("shorten sequence_length"));
}

TEST(Sampler, DigestsOfGroupsTellAllThatTheOrderDependsOn) {
  std::set<std::string> digests = {SamplerDigest(GroupedSpec()), SamplerDigest(Spec(443))};
  SamplerSpec changed = GroupedSpec();
  changed.groups[1].weight = 0.31;
  digests.insert(SamplerDigest(changed));
  changed = GroupedSpec();
  changed.groups[1].name = "d";
  digests.insert(SamplerDigest(changed));
  changed = GroupedSpec();
  changed.groups.pop_back();
  digests.insert(SamplerDigest(changed));
  changed = Spec(443);
  changed.rows = 7;
  digests.insert(SamplerDigest(changed));
  EXPECT_EQ(digests.size(), 6u);
}

TEST(Sampler, DigestChangesWithEveryField) {
  std::set<std::string> digests = {SamplerDigest(Spec(100))};
  SamplerSpec changed = Spec(100);
  changed.dataset_digest = "other";
  digests.insert(SamplerDigest(changed));
  digests.insert(SamplerDigest(Spec(101)));
  changed = Spec(100);
  changed.sequence_length = 16;
  digests.insert(SamplerDigest(changed));
  changed = Spec(100);
  changed.seed = 6;
  digests.insert(SamplerDigest(changed));
  digests.insert(SamplerDigest(Spec(100, false)));
  EXPECT_EQ(digests.size(), 6u);
}

}  // namespace
}  // namespace llmctl::data
