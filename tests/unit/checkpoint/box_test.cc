#include "worker/engine/checkpoint/box.h"

#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace llmctl::checkpoint {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

TEST(SliceName, RoundTrips) {
  for (const char* name : {"model.norm.weight@0:256", "a@0:3,4:9,1:2", "scalar@", "odd@name@0:1"}) {
    absl::StatusOr<SliceName> slice = ParseSliceName(name);

    ASSERT_TRUE(slice.ok()) << slice.status();
    EXPECT_EQ(FormatSliceName(slice->tensor, slice->box), name);
  }
}

TEST(SliceName, RefusesWhatIsNotTheOneSpelling) {
  for (const char* name : {"a", "@0:1", "a@0", "a@0:1,", "a@,0:1", "a@0:1:2", "a@1:1", "a@2:1", "a@-1:1", "a@+0:1",
                           "a@00:1", "a@0:01", "a@ 0:1", "a@0:x", "a@0:99999999999999999999",
                           "a@0:999999999999999999,0:999999999999999999", "a@0:1,0:1,0:1,0:1,0:1,0:1,0:1,0:1,0:1"}) {
    EXPECT_FALSE(ParseSliceName(name).ok()) << name;
  }
}

TEST(CopyCommon, CopiesRowsOfBoxesThatOverlapInPart) {
  // A 4 x 5 tensor whose element (r, c) is 10 r + c; its rows 1..3 are stored, the columns 3..4 of rows 2..3 wanted.
  Box stored = {{1, 4}, {0, 5}}, wanted = {{2, 4}, {3, 5}};
  std::vector<int32_t> from;
  for (int r = 1; r < 4; ++r) {
    for (int c = 0; c < 5; ++c) from.push_back(10 * r + c);
  }
  std::vector<int32_t> to(4, -1);

  int64_t copied = CopyCommon({stored, reinterpret_cast<const char*>(from.data())},
                              {wanted, reinterpret_cast<char*>(to.data())}, sizeof(int32_t));

  EXPECT_EQ(copied, 4);
  EXPECT_THAT(to, ElementsAre(23, 24, 33, 34));
}

TEST(CopyCommon, AssemblesAThreeDimensionalBoxFromPieces) {
  // 3 x 4 x 5 elements numbered in order, cut in two along each dimension in turn.
  std::vector<int32_t> whole(60);
  std::iota(whole.begin(), whole.end(), 0);
  Box all = WholeBox({3, 4, 5});
  for (int d = 0; d < 3; ++d) {
    std::vector<int32_t> rebuilt(60, -1);
    int64_t copied = 0;
    for (int half = 0; half < 2; ++half) {
      Box piece = all;
      (half == 0 ? piece[d].end : piece[d].begin) = 2;
      std::vector<int32_t> part(BoxElements(piece));
      CopyCommon({all, reinterpret_cast<const char*>(whole.data())}, {piece, reinterpret_cast<char*>(part.data())}, 4);
      copied += CopyCommon({piece, reinterpret_cast<const char*>(part.data())},
                           {all, reinterpret_cast<char*>(rebuilt.data())}, 4);
    }
    EXPECT_EQ(copied, 60);
    EXPECT_EQ(rebuilt, whole) << "cut along dimension " << d;
  }
}

TEST(CopyCommon, LeavesTheTargetAloneWithoutACommonPart) {
  Box a = {{0, 2}}, b = {{2, 4}}, other_rank = {{0, 2}, {0, 1}};
  std::vector<char> from(2, 1), to(2, 7);

  EXPECT_EQ(CopyCommon({a, from.data()}, {b, to.data()}, 1), 0);
  EXPECT_EQ(CopyCommon({a, from.data()}, {other_rank, to.data()}, 1), 0);
  EXPECT_THAT(to, Each(7));
}

}  // namespace
}  // namespace llmctl::checkpoint
