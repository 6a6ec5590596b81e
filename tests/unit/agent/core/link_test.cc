// What the coordinator is told: once per link, truthfully after a restart, and exits until they are known to
// have arrived.
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/agent/core/host.h"

namespace llmctl::agent {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

TEST(Link, EachPhaseIsToldOnce) {
  Host host = Host().Start().Connect().Do(StartOrder(1)).Do(ShimConnected{Generation(1), 0});

  host.Say(1, 0, contract::Started{.pid = 42});
  ASSERT_THAT(host.Sent<RankUpdate>(), SizeIs(1));
  EXPECT_EQ(host.Sent<RankUpdate>()[0].pid, 42);
  host.Say(1, 0, contract::Started{.pid = 42});
  EXPECT_THAT(host.last, IsEmpty());
  host.Say(1, 0, contract::Ready{.step = 7});
  ASSERT_THAT(host.Sent<RankUpdate>(), SizeIs(1));
  EXPECT_EQ(host.Sent<RankUpdate>()[0].phase, RankPhase::kRunning);
}

TEST(Link, WhatHappenedWhileTheCoordinatorWasAwayIsInTheHello) {
  Host host = Host().Start().Connect().Run(1, {{0, 0}, {1, 1}}).Disconnect();
  host.Exit(1, 1, {.signal = 11});
  EXPECT_THAT(host.Last<SendToCoordinator>(), IsEmpty());

  host.Do(CoordinatorConnected{});

  ASSERT_THAT(host.Sent<Hello>(), SizeIs(1));
  std::vector<RunningShim> shims = host.Sent<Hello>()[0].shims;
  ASSERT_THAT(shims, SizeIs(2));
  EXPECT_EQ(shims[0].phase, RankPhase::kRunning);
  EXPECT_EQ(shims[0].pid, 100);
  EXPECT_EQ(shims[1].exit->signal, 11);
  // It need not be told again.
  host.Do(CoordinatorWelcomed{.heartbeat_interval = absl::Seconds(1)});
  EXPECT_THAT(host.Sent<RankUpdate>(), IsEmpty());
}

TEST(Link, WhatHappensBetweenHelloAndWelcomeIsToldAfterIt) {
  Host host = Host().Start().Connect().Run(1).Disconnect().Do(CoordinatorConnected{});

  host.Exit(1, 0, {.exit_code = 65});
  EXPECT_THAT(host.Last<SendToCoordinator>(), IsEmpty());
  host.Do(CoordinatorWelcomed{.heartbeat_interval = absl::Seconds(1)});

  ASSERT_THAT(host.Sent<RankUpdate>(), SizeIs(1));
  EXPECT_EQ(host.Sent<RankUpdate>()[0].exit->exit_code, 65);
  EXPECT_THAT(host.Sent<GangReleased>(), SizeIs(1));
}

TEST(Link, GangIsReleasedWhenItsLastRankHasExited) {
  Host host = Host().Start().Connect().Run(1, {{0, 0}, {1, 1}});

  host.Exit(1, 0);
  EXPECT_THAT(host.Sent<GangReleased>(), IsEmpty());
  host.Exit(1, 1);
  EXPECT_THAT(host.Sent<GangReleased>(), SizeIs(1));
}

TEST(Link, ShimIsReleasedOnlyWhenItsExitIsKnownToHaveArrived) {
  Host host = Host().Start().Connect().Run(1).Exit(1, 0);
  EXPECT_THAT(host.ToShims<contract::Release>(), IsEmpty());

  // The answer to a heartbeat sent before the exit proves nothing.
  host.ConfirmAll();
  EXPECT_THAT(host.last, IsEmpty());
  host.Fire(Timer::Purpose::kHeartbeat);
  host.ConfirmAll();

  EXPECT_THAT(host.ToShims<contract::Release>(), SizeIs(1));
  EXPECT_THAT(host.Last<RetireShim>(), SizeIs(1));
  EXPECT_THAT(host.state.gangs, IsEmpty());
}

TEST(Link, AnExitThatMayHaveBeenLostWithTheLinkIsToldAgain) {
  Host host = Host().Start().Connect().Run(1).Exit(1, 0, {.exit_code = 65});

  host.Disconnect().Do(CoordinatorConnected{});

  EXPECT_EQ(host.Sent<Hello>()[0].shims.at(0).exit->exit_code, 65);
  host.Do(CoordinatorWelcomed{.heartbeat_interval = absl::Seconds(1)});
  EXPECT_THAT(host.Sent<GangReleased>(), SizeIs(1));
}

TEST(Link, HelloCutsLogTails) {
  Host host = Host().Start().Connect().Run(1).Exit(1, 0, {.log_tail = std::string(60000, 'x') + "end"});
  EXPECT_EQ(host.Sent<RankUpdate>()[0].exit->log_tail.size(), 60003u);

  host.Disconnect().Do(CoordinatorConnected{});

  std::string tail = host.Sent<Hello>()[0].shims.at(0).exit->log_tail;
  EXPECT_EQ(tail.size(), 4096u);
  EXPECT_EQ(tail.substr(4093), "end");
}

TEST(Link, HeartbeatsGoOnAtTheIntervalOfTheWelcomeAndEndWithTheLink) {
  Host host = Host().Start();
  host.Do(CoordinatorConnected{}).Do(CoordinatorWelcomed{.heartbeat_interval = absl::Milliseconds(250)});
  EXPECT_EQ(host.Sent<Heartbeat>()[0].sequence, 1);
  EXPECT_EQ(host.Last<ArmTimer>().back().delay, absl::Milliseconds(250));

  host.Fire(Timer::Purpose::kHeartbeat);
  EXPECT_EQ(host.Sent<Heartbeat>()[0].sequence, 2);
  host.Disconnect().Fire(Timer::Purpose::kHeartbeat);
  EXPECT_THAT(host.Sent<Heartbeat>(), IsEmpty());
}

TEST(Readoption, DialsOnlyWhenAllShimsHaveToldHowTheyAre) {
  Host host = Host().Start().Connect().Run(1, {{0, 0}, {1, 1}}).Crash();
  host.Do(ShimFound{Generation(1), 0, 0, absl::Minutes(10)}).Do(ShimFound{Generation(1), 1, 1, absl::Minutes(10)});

  host.Start();
  EXPECT_THAT(host.Last<DialCoordinator>(), IsEmpty());
  host.Do(ShimConnected{Generation(1), 0});
  host.Say(1, 0, contract::Started{.pid = 5}).Say(1, 0, contract::Ready{}).Say(1, 0, contract::CaughtUp{});
  EXPECT_THAT(host.Last<DialCoordinator>(), IsEmpty());
  host.Exit(1, 1, {.signal = 9});

  EXPECT_THAT(host.Last<DialCoordinator>(), SizeIs(1));
  host.Do(CoordinatorConnected{});
  EXPECT_EQ(host.Sent<Hello>()[0].shims.at(0).phase, RankPhase::kRunning);
  EXPECT_EQ(host.Sent<Hello>()[0].shims.at(1).exit->signal, 9);
}

TEST(Readoption, AShimThatHangsDoesNotKeepTheHostAway) {
  Host host = Host().Do(ShimFound{Generation(1), 0, 0, absl::Minutes(10)}).Start();

  host.Fire(Timer::Purpose::kCatchUp);

  EXPECT_THAT(host.Last<DialCoordinator>(), SizeIs(1));
}

TEST(Readoption, WithoutShimsItDialsAtOnceAndOnce) {
  Host host = Host().Start();

  EXPECT_THAT(host.Last<DialCoordinator>(), SizeIs(1));
  host.Fire(Timer::Purpose::kCatchUp);
  EXPECT_THAT(host.Last<DialCoordinator>(), IsEmpty());
}

TEST(Probe, ResultGoesBackAndTheNonceIsRemovedWhenTheGangStarts) {
  Host host = Host().Start().Connect();
  ProbeOrdered order = {
      .generation = Generation(1), .checkpoint_directory = "/c", .dataset = "/d", .nonce = "n", .write = true};

  host.Do(order);
  EXPECT_THAT(host.Last<RunProbe>(), SizeIs(1));
  host.Do(ProbeFinished{{.generation = Generation(1), .ok = true, .dataset_digest = "x"}});
  EXPECT_EQ(host.Sent<ProbeResult>()[0].dataset_digest, "x");
  host.Do(StartOrder(1));

  ASSERT_THAT(host.Last<RemoveProbe>(), SizeIs(1));
  EXPECT_EQ(host.Last<RemoveProbe>()[0].nonce, "n");
}

TEST(Probe, TheNonceOutlivesTheLinkAndExpires) {
  Host host = Host().Start().Connect();
  host.Do(ProbeOrdered{.generation = Generation(1), .checkpoint_directory = "/c", .nonce = "n", .write = true});

  host.Disconnect();
  EXPECT_THAT(host.Last<RemoveProbe>(), IsEmpty());
  host.Fire(Timer::Purpose::kProbeExpiry);

  EXPECT_THAT(host.Last<RemoveProbe>(), SizeIs(1));
}

TEST(Probe, TheNonceOfTheNextRoundTakesTheOldOnesPlace) {
  Host host = Host().Start().Connect();
  ProbeOrdered order = {.generation = Generation(1), .checkpoint_directory = "/c", .nonce = "n-0", .write = true};
  host.Do(order);
  order.nonce = "n-1";

  host.Do(order);

  ASSERT_THAT(host.Last<RemoveProbe>(), SizeIs(1));
  EXPECT_EQ(host.Last<RemoveProbe>()[0].nonce, "n-0");
  EXPECT_THAT(host.Last<RunProbe>(), SizeIs(1));
}

TEST(Probe, AnEarlierWritingsExpiryDoesNotRemoveALaterOne) {
  Host host = Host().Start().Connect();
  ProbeOrdered order = {.generation = Generation(1), .checkpoint_directory = "/c", .nonce = "n", .write = true};
  host.Do(order);
  ASSERT_THAT(host.Last<ArmTimer>(), SizeIs(1));
  int64_t earlier = host.Last<ArmTimer>()[0].timer;
  host.Do(order);

  host.Do(TimerFired{earlier});
  EXPECT_THAT(host.Last<RemoveProbe>(), IsEmpty());
  host.Fire(Timer::Purpose::kProbeExpiry);
  EXPECT_THAT(host.Last<RemoveProbe>(), SizeIs(1));
}

}  // namespace
}  // namespace llmctl::agent
