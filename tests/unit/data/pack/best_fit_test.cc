#include "worker/data/pack/best_fit.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/rng.h"

namespace llmctl::data {
namespace {

using ::testing::ElementsAre;

// The rule written down as it is said, in quadratic time.
std::vector<int32_t> PackPlainly(const std::vector<int32_t>& lengths, int32_t capacity) {
  std::vector<size_t> order(lengths.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return lengths[a] > lengths[b]; });
  struct Row {
    int32_t room;
    int64_t changed;
  };
  std::vector<Row> rows;
  std::vector<int32_t> out(lengths.size());
  int64_t clock = 0;
  for (size_t piece : order) {
    int32_t best = -1;
    for (size_t r = 0; r < rows.size(); ++r) {
      if (rows[r].room < lengths[piece]) continue;
      bool tighter = best < 0 || rows[r].room < rows[best].room;
      bool later = best >= 0 && rows[r].room == rows[best].room && rows[r].changed > rows[best].changed;
      if (tighter || later) best = static_cast<int32_t>(r);
    }
    if (best < 0) {
      best = static_cast<int32_t>(rows.size());
      rows.push_back({capacity, 0});
    }
    rows[best].room -= lengths[piece];
    rows[best].changed = ++clock;
    out[piece] = best;
  }
  return out;
}

TEST(PackBestFitDecreasing, LongestFirstEachWhereItFitsBest) {
  // 7 and 6 begin rows; 4 fits beside the 6 exactly; 3 beside the 7; the 2 needs a row of its own.
  BestFit packed = PackBestFitDecreasing({2, 7, 3, 4, 6}, 10);

  EXPECT_THAT(packed.rows, ElementsAre(2, 0, 0, 1, 1));
  EXPECT_EQ(packed.row_count, 3);
}

TEST(PackBestFitDecreasing, IsTheRuleForAnyLengths) {
  SeededRng rng(11);
  for (int32_t capacity : {1, 2, 63, 64, 65, 100, 4096, 5000}) {
    for (int round = 0; round < 10; ++round) {
      std::vector<int32_t> lengths(rng.Below(300));
      for (int32_t& length : lengths) length = static_cast<int32_t>(1 + rng.Below(capacity) / (1 + rng.Below(3)));
      BestFit packed = PackBestFitDecreasing(lengths, capacity);
      EXPECT_EQ(packed.rows, PackPlainly(lengths, capacity)) << "capacity " << capacity << " round " << round;
    }
  }
}

TEST(PackBestFitDecreasing, NothingNeedsNoRow) {
  EXPECT_EQ(PackBestFitDecreasing({}, 10).row_count, 0);
}

}  // namespace
}  // namespace llmctl::data
