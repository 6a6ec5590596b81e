#include "coordinator/runtime/straggler_watch.h"

#include <map>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace llmctl::runtime {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

bool Straggles(const std::map<int, double>& figures, int rank, bool before = false) {
  std::map<int, RankSpeed> earlier;
  earlier[rank].straggler = before;
  return CompareSpeeds(figures, earlier).at(rank).straggler;
}

TEST(CompareSpeeds, OneOfTwoIsComparedWithTheOther) {
  EXPECT_TRUE(Straggles({{0, 1.0}, {1, 1.5}}, 1));
  EXPECT_FALSE(Straggles({{0, 1.0}, {1, 1.5}}, 0));
  EXPECT_FALSE(Straggles({{0, 1.0}, {1, 1.4}}, 1));
}

TEST(CompareSpeeds, WithinTheScatterOfTheOthersNobodyStraggles) {
  // The others differ as much among themselves.
  EXPECT_FALSE(Straggles({{0, 1.0}, {1, 1.6}, {2, 0.6}, {3, 1.3}, {4, 1.75}}, 4));
  EXPECT_TRUE(Straggles({{0, 1.0}, {1, 1.02}, {2, 0.98}, {3, 1.01}, {4, 1.75}}, 4));
}

TEST(CompareSpeeds, AStragglerStaysOneUntilItIsNearTheOthers) {
  EXPECT_TRUE(Straggles({{0, 1.0}, {1, 1.3}}, 1, /*before=*/true));
  EXPECT_FALSE(Straggles({{0, 1.0}, {1, 1.1}}, 1, /*before=*/true));
}

TEST(CompareSpeeds, ALoneRankIsComparedWithNobody) { EXPECT_THAT(CompareSpeeds({{0, 1.0}}, {}), IsEmpty()); }

// Two ranks whose steps take the same time on the clock, but rank 1 works `busy` seconds in each.
class TwoRanks {
 public:
  std::vector<StragglerWatch::Change> Second(double busy) {
    std::vector<StragglerWatch::Change> changes;
    for (int rank = 0; rank < 2; ++rank) {
      busy_[rank] += 10 * (rank == 1 ? busy : 0.05);
      std::vector<RankPulse> own = {{.generation = {JobId("j-1"), 1, generation},
                                     .rank = rank,
                                     .steps_here = 10 * (seconds_ + 1),
                                     .busy_seconds = busy_[rank]}};
      for (auto& change : watch.Observe(own, {absl::Seconds(seconds_), absl::UnixEpoch()})) changes.push_back(change);
    }
    ++seconds_;
    return changes;
  }
  std::vector<StragglerWatch::Change> Seconds(int count, double busy) {
    std::vector<StragglerWatch::Change> changes;
    for (int i = 0; i < count; ++i) {
      for (auto& change : Second(busy)) changes.push_back(change);
    }
    return changes;
  }

  StragglerWatch watch;
  int64_t generation = 1;

 private:
  int64_t seconds_ = 0;
  std::map<int, double> busy_;
};

TEST(StragglerWatch, NamesTheRankThatWorksLongerOnce) {
  TwoRanks run;
  EXPECT_THAT(run.Seconds(6, 0.05), IsEmpty());

  std::vector<StragglerWatch::Change> changes = run.Seconds(10, 0.09);

  ASSERT_THAT(changes, SizeIs(1));
  EXPECT_EQ(changes[0].rank, 1);
  EXPECT_THAT(changes[0].text, HasSubstr("rank 1 is slow: a step takes it 0.090 s of work, 1.8 times the median"));
  EXPECT_TRUE(run.watch.Speeds(JobId("j-1")).at(1).straggler);
  EXPECT_FALSE(run.watch.Speeds(JobId("j-1")).at(0).straggler);
}

TEST(StragglerWatch, OneSlowWindowSaysNothing) {
  TwoRanks run;
  run.Seconds(6, 0.05);

  EXPECT_THAT(run.Seconds(2, 0.5), IsEmpty());
  EXPECT_THAT(run.Seconds(6, 0.05), IsEmpty());
}

TEST(StragglerWatch, TellsWhenTheRankHasRecovered) {
  TwoRanks run;
  run.Seconds(10, 0.09);

  std::vector<StragglerWatch::Change> changes = run.Seconds(10, 0.05);

  ASSERT_THAT(changes, SizeIs(1));
  EXPECT_THAT(changes[0].text, HasSubstr("rank 1 is no longer slow"));
}

TEST(StragglerWatch, ANewGenerationIsComparedAfresh) {
  TwoRanks run;
  run.Seconds(10, 0.09);
  run.generation = 2;

  EXPECT_THAT(run.Seconds(2, 0.09), IsEmpty());
  EXPECT_THAT(run.watch.Speeds(JobId("j-1")), IsEmpty());
}

}  // namespace
}  // namespace llmctl::runtime
