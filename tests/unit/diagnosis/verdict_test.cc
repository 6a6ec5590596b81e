#include "common/diagnosis/verdict.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace llmctl::diagnosis {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

CollectivePosition In(int64_t number, const std::string& state = "entered", double seconds = 4.2) {
  return {.group = "data",
          .number = number,
          .operation = "all_reduce",
          .site = "grad.bucket layers.7.mlp",
          .count = 4096,
          .state = state,
          .seconds = seconds};
}

RankView Rank(int rank, CollectivePosition position) {
  return {.rank = rank,
          .node = "host-" + std::to_string(rank / 2),
          .pid = 100 + rank,
          .process = "S",
          .activity = "training",
          .phase = "collective",
          .where = "in a collective",
          .phase_seconds = 4.2,
          .step = 40,
          .collectives = {position}};
}

RankView InTheLoader(int rank, int64_t number) {
  RankView view = Rank(rank, In(number, "done", 4.3));
  view.phase = "data";
  view.where = "in the data loader";
  return view;
}

TEST(Verdict, NamesTheRankThatNeverEnteredAndWhereItWasSeen) {
  Verdict verdict = FindCulprit(
      {Rank(0, In(5127)), Rank(1, In(5127)), Rank(2, In(5127, "entered", 4.5)), InTheLoader(3, 5126)}, 4);

  EXPECT_EQ(verdict.text,
            "rank 3 (host-1) never entered all_reduce #5127 grad.bucket layers.7.mlp, which 3 ranks have waited in for "
            "4.5 s; last seen in the data loader 4.2 s ago");
  EXPECT_THAT(verdict.suspects, ElementsAre(3));
}

TEST(Verdict, SaysThatTheProcessIsStopped) {
  RankView stopped = InTheLoader(1, 9);
  stopped.process = "T";

  Verdict verdict = FindCulprit({Rank(0, In(10)), stopped}, 2);

  EXPECT_THAT(verdict.text, HasSubstr("rank 1 (host-0) never entered all_reduce #10"));
  EXPECT_THAT(verdict.text, HasSubstr("which rank 0 (host-0) has waited in"));
  EXPECT_THAT(verdict.text, HasSubstr("its process is stopped (SIGSTOP, or a debugger)"));
}

TEST(Verdict, RankThatIsStillInAnEarlierCollectiveIsShownThere) {
  Verdict verdict = FindCulprit({Rank(0, In(12)), Rank(1, In(11))}, 2);

  EXPECT_THAT(verdict.text, HasSubstr("rank 1 (host-0) never entered all_reduce #12"));
  EXPECT_THAT(verdict.text, HasSubstr("it is still in all_reduce #11"));
}

TEST(Verdict, SeveralAbsentRanksAreToldEachByItself) {
  Verdict verdict = FindCulprit({Rank(0, In(5)), InTheLoader(1, 4), InTheLoader(2, 4)}, 3);

  EXPECT_THAT(verdict.text, HasSubstr("ranks 1, 2 never entered"));
  EXPECT_THAT(verdict.text, HasSubstr("rank 1: last seen in the data loader"));
  EXPECT_THAT(verdict.text, HasSubstr("rank 2: last seen in the data loader"));
  EXPECT_THAT(verdict.suspects, ElementsAre(1, 2));
}

TEST(Verdict, ManyAbsentRanksAreCountedNotListed) {
  std::vector<RankView> views = {Rank(0, In(5))};
  for (int rank = 1; rank <= 20; ++rank) views.push_back(InTheLoader(rank, 4));

  Verdict verdict = FindCulprit(views, 21);

  EXPECT_THAT(verdict.text, HasSubstr("ranks 1, 2, 3, 4 and 16 more never entered"));
  EXPECT_THAT(verdict.text, Not(HasSubstr("rank 9")));
  EXPECT_EQ(verdict.suspects.size(), 20u);
}

TEST(Verdict, WhereAllHaveEnteredAStoppedProcessIsToBlame) {
  RankView stopped = Rank(1, In(7));
  stopped.process = "T";

  Verdict verdict = FindCulprit({Rank(0, In(7)), stopped}, 2);

  EXPECT_THAT(verdict.text, HasSubstr("all ranks have entered all_reduce #7"));
  EXPECT_THAT(verdict.text, HasSubstr("rank 1 (host-0) cannot go on; its process is stopped"));
  EXPECT_THAT(verdict.suspects, ElementsAre(1));
}

TEST(Verdict, WhereAllWaitAndAllLiveItIsTheTransport) {
  Verdict verdict = FindCulprit({Rank(0, In(7)), Rank(1, In(7))}, 2);

  EXPECT_THAT(verdict.text, HasSubstr("all ranks have entered all_reduce #7"));
  EXPECT_THAT(verdict.text, HasSubstr("network"));
  EXPECT_THAT(verdict.suspects, IsEmpty());
}

TEST(Verdict, ProgramsThatHaveDivergedAreToldFromSlowOnes) {
  RankView other = Rank(1, In(7));
  other.collectives[0].site = "loss.sum";
  other.collectives[0].count = 1;

  Verdict verdict = FindCulprit({Rank(0, In(7)), other}, 2);

  EXPECT_THAT(verdict.text, HasSubstr("do not agree on collective #7"));
  EXPECT_THAT(verdict.text, HasSubstr("rank 1 is in all_reduce loss.sum of 1 elements"));
}

TEST(Verdict, WithoutCollectivesTheOneThatIsLongestWhereItIs) {
  RankView writing = {.rank = 0,
                      .node = "host-0",
                      .process = "D",
                      .activity = "checkpoint",
                      .phase = "writing",
                      .where = "writing a checkpoint",
                      .phase_seconds = 640};

  Verdict verdict = FindCulprit({writing}, 1);

  EXPECT_THAT(verdict.text, HasSubstr("rank 0 (host-0): last seen writing a checkpoint (checkpoint) 640.0 s ago"));
  EXPECT_THAT(verdict.text, HasSubstr("waits uninterruptibly in the kernel"));
  EXPECT_THAT(verdict.suspects, ElementsAre(0));
}

TEST(Verdict, APeerThatDiedIsWhatTheFailedCollectiveWaitedFor) {
  RankView dead = Rank(1, In(30, "done", 0.2));
  dead.process = "";
  dead.exit = "was killed by signal 9";

  Verdict verdict = FindCulprit({Rank(0, In(31, "failed", 0.1)), dead}, 2);

  EXPECT_THAT(verdict.text, HasSubstr("rank 1 (host-0) never entered all_reduce #31"));
  EXPECT_THAT(verdict.text, HasSubstr("it was killed by signal 9"));
}

TEST(Verdict, APeerThatDiedInTheSameCollectiveIsToldFromItsVictims) {
  RankView victim = Rank(0, In(31, "failed"));
  RankView dead = Rank(1, In(31));
  victim.process = dead.process = "";
  victim.exit = "was stopped on request (ended with exit code 67)";
  dead.exit = "was killed by signal 9";

  Verdict verdict = FindCulprit({victim, dead}, 2);

  EXPECT_THAT(verdict.text, HasSubstr("all ranks have entered all_reduce #31"));
  EXPECT_THAT(verdict.text, HasSubstr("but rank 1 (host-0) was killed by signal 9"));
  EXPECT_THAT(verdict.suspects, ElementsAre(1));
}

TEST(Verdict, RanksOfWhichNothingIsKnownAreSuspectsToo) {
  Verdict verdict = FindCulprit({Rank(0, In(7)), Rank(1, In(7))}, 4);

  EXPECT_THAT(verdict.text, HasSubstr("nothing is known of ranks 2, 3"));
  EXPECT_THAT(verdict.suspects, ElementsAre(2, 3));
  EXPECT_THAT(FindCulprit({}, 1).text, HasSubstr("nothing is known of rank 0"));
}

TEST(RankView, ComesBackFromJsonAsItWent) {
  RankView view = InTheLoader(3, 17);
  view.exit = "was killed by signal 9";

  auto back = DecodeRankView(EncodeRankView(view));

  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(*back, view);
}

TEST(RankView, DamageIsAnError) {
  std::string json = EncodeRankView(InTheLoader(3, 17));

  EXPECT_FALSE(DecodeRankView(json.substr(0, json.size() / 2)).ok());
  EXPECT_FALSE(DecodeRankView("{}").ok());
  EXPECT_TRUE(DecodeRankView(json.insert(1, "\"of a newer version\":1,")).ok());
}

}  // namespace
}  // namespace llmctl::diagnosis
