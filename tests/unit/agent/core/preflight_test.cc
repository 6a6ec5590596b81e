#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/agent/core/host.h"

namespace llmctl::agent {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(AgentPreflight, IsRunAndAnsweredWithItsNumber) {
  Host host;
  host.Start().Connect().Do(PreflightOrdered{7});
  EXPECT_THAT(host.Last<RunPreflight>(), SizeIs(1));

  host.Do(PreflightFinished{.interrupted = false, .found = {.passed = true}});

  ASSERT_THAT(host.Sent<PreflightResult>(), SizeIs(1));
  EXPECT_EQ(host.Sent<PreflightResult>()[0].number, 7);
  EXPECT_TRUE(host.Sent<PreflightResult>()[0].found.passed);
}

TEST(AgentPreflight, IsCutShortByAStartWhichDoesNotWait) {
  Host host;
  host.Start().Connect().Do(PreflightOrdered{7});

  host.Do(StartOrder(1));
  EXPECT_THAT(host.Last<CancelPreflight>(), SizeIs(1));
  EXPECT_THAT(host.Last<SpawnShim>(), SizeIs(1));
  host.Do(PreflightFinished{.interrupted = true, .found = {}});

  ASSERT_THAT(host.Sent<PreflightResult>(), SizeIs(1));
  EXPECT_TRUE(host.Sent<PreflightResult>()[0].interrupted);
}

TEST(AgentPreflight, IsNotBegunBesideRanks) {
  Host host;
  host.Start().Connect().Run(1).Do(PreflightOrdered{7});

  EXPECT_THAT(host.Last<RunPreflight>(), IsEmpty());
  ASSERT_THAT(host.Sent<PreflightResult>(), SizeIs(1));
  EXPECT_TRUE(host.Sent<PreflightResult>()[0].interrupted);
}

TEST(AgentPreflight, ThatRunsAlreadyAnswersTheNewestOrder) {
  Host host;
  host.Start().Connect().Do(PreflightOrdered{7});
  host.Disconnect().Connect().Do(PreflightOrdered{8});
  EXPECT_THAT(host.Last<RunPreflight>(), IsEmpty());

  host.Do(PreflightFinished{.interrupted = false, .found = {.passed = true}});

  ASSERT_THAT(host.Sent<PreflightResult>(), SizeIs(1));
  EXPECT_EQ(host.Sent<PreflightResult>()[0].number, 8);
}

TEST(AgentPreflight, AnOrderThatComesTwiceDoesNotReplaceTheNewerOne) {
  Host host;
  host.Start().Connect().Do(PreflightOrdered{7}).Do(PreflightOrdered{8}).Do(PreflightOrdered{7});

  host.Do(PreflightFinished{.interrupted = false, .found = {.passed = true}});

  ASSERT_THAT(host.Sent<PreflightResult>(), SizeIs(1));
  EXPECT_EQ(host.Sent<PreflightResult>()[0].number, 8);
}

// A coordinator that was restored from a backup counts from there.
TEST(AgentPreflight, OnANewLinkAnyNumberIsNew) {
  Host host;
  host.Start().Connect().Do(PreflightOrdered{7});
  host.Disconnect().Connect().Do(PreflightOrdered{3});

  host.Do(PreflightFinished{.interrupted = false, .found = {.passed = true}});

  ASSERT_THAT(host.Sent<PreflightResult>(), SizeIs(1));
  EXPECT_EQ(host.Sent<PreflightResult>()[0].number, 3);
}

TEST(AgentPreflight, ThatEndsAfterItsLinkAnswersNobody) {
  Host host;
  host.Start().Connect().Do(PreflightOrdered{7});

  host.Disconnect().Connect().Do(PreflightFinished{.interrupted = false, .found = {.passed = true}});

  EXPECT_THAT(host.Sent<PreflightResult>(), IsEmpty());
}

TEST(AgentPreflight, ThatEndsWithoutALinkIsForgotten) {
  Host host;
  host.Start().Connect().Do(PreflightOrdered{7});
  host.Disconnect().Do(PreflightFinished{.interrupted = false, .found = {.passed = true}});
  EXPECT_THAT(host.Sent<PreflightResult>(), IsEmpty());

  host.Connect().Do(PreflightOrdered{8});

  EXPECT_THAT(host.Last<RunPreflight>(), SizeIs(1));
}

}  // namespace
}  // namespace llmctl::agent
