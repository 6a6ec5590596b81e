#include "common/base/rng.h"

#include <cmath>
#include <set>

#include <gtest/gtest.h>

namespace llmctl {
namespace {

TEST(SeededRng, SameSeedGivesTheSameSequence) {
  SeededRng a(7), b(7), c(8);

  for (int i = 0; i < 100; ++i) EXPECT_EQ(a.Next(), b.Next());
  EXPECT_NE(a.Next(), c.Next());
}

TEST(SeededRng, BelowReachesEveryValueAndNothingElse) {
  SeededRng rng(1);
  std::set<uint64_t> seen;

  for (int i = 0; i < 1000; ++i) seen.insert(rng.Below(7));

  EXPECT_EQ(seen.size(), 7u);
  EXPECT_EQ(*seen.rbegin(), 6u);
}

TEST(KeyedRandom, DependsOnKeyNameAndIndexOnly) {
  KeyedRandom a(1, "x"), same(1, "x"), other_seed(2, "x"), other_name(1, "y");

  EXPECT_EQ(a.Bits(12345), same.Bits(12345));
  EXPECT_NE(a.Bits(12345), a.Bits(12346));
  EXPECT_NE(a.Bits(12345), other_seed.Bits(12345));
  EXPECT_NE(a.Bits(12345), other_name.Bits(12345));
}

TEST(KeyedRandom, NormalHasMeanZeroAndVarianceOne) {
  KeyedRandom rng(3, "normal");
  const int n = 100000;
  double sum = 0, squares = 0;

  for (int i = 0; i < n; ++i) {
    double x = rng.Normal(i);
    sum += x;
    squares += x * x;
  }

  // Four standard errors.
  EXPECT_NEAR(sum / n, 0, 4 / std::sqrt(n));
  EXPECT_NEAR(squares / n, 1, 4 * std::sqrt(2.0 / n));
}

}  // namespace
}  // namespace llmctl
