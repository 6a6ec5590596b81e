// Trainers that wait for a job: when they are started, which start takes one, and that they are nobody's process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/agent/core/host.h"

namespace llmctl::agent {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

// Wants `count` standbys; the first is due.
Host HostWith(int count) {
  Host host;
  host.state.standbys_wanted = count;
  return host.Start().Connect();
}

// The standby that is due has been started and is loaded.
void Load(Host& host) {
  host.Fire(Timer::Purpose::kStandby);
  ASSERT_THAT(host.Last<StartStandby>(), SizeIs(1));
  int64_t number = host.Last<StartStandby>()[0].number;
  host.Do(StandbyConnected{number}).Do(StandbyReady{number, 1000});
}

std::vector<absl::Duration> Delays(const Host& host) {
  std::vector<absl::Duration> delays;
  for (const ArmTimer& timer : host.Last<ArmTimer>()) {
    auto armed = host.state.timers.find(timer.timer);
    if (armed->second.purpose == Timer::Purpose::kStandby) delays.push_back(timer.delay);
  }
  return delays;
}

std::vector<int64_t> Taken(const Host& host) {
  std::vector<int64_t> taken;
  for (const SpawnShim& spawn : host.Last<SpawnShim>()) taken.push_back(spawn.standby);
  return taken;
}

TEST(Standby, AnIdleHostStartsThemAtOnceAndOneAfterTheOther) {
  Host host;
  host.state.standbys_wanted = 2;

  host.Start();
  EXPECT_THAT(Delays(host), ElementsAre(absl::ZeroDuration()));
  host.Fire(Timer::Purpose::kStandby);
  ASSERT_THAT(host.Last<StartStandby>(), SizeIs(1));
  host.Do(StandbyConnected{1});
  EXPECT_THAT(host.last, IsEmpty()) << "one loads at a time";
  host.Do(StandbyReady{1, 1000});
  EXPECT_THAT(Delays(host), ElementsAre(absl::ZeroDuration()));
  Load(host);

  EXPECT_THAT(host.state.standbys, SizeIs(2));
  EXPECT_THAT(Delays(host), IsEmpty());
}

TEST(Standby, HostsThatWantNoneStartNone) {
  Host host = Host().Start().Connect().Run(1);

  EXPECT_THAT(host.state.standbys, IsEmpty());
  EXPECT_THAT(Delays(host), IsEmpty());
}

TEST(Standby, EveryRankOfAStartTakesOneAsLongAsThereAreSome) {
  Host host = HostWith(2);
  Load(host);
  Load(host);

  host.Do(StartOrder(1, {{0, 0}, {1, 1}, {2, 2}}));

  EXPECT_THAT(Taken(host), ElementsAre(1, 2, 0));
  EXPECT_THAT(host.state.standbys, IsEmpty());
  EXPECT_TRUE(std::holds_alternative<PersistFences>(host.last[0])) << "taking one is a start like any other";
}

TEST(Standby, OneThatStillLoadsIsAheadOfAFreshProcessButBehindOneThatIsReady) {
  Host host = HostWith(2);
  Load(host);
  host.Fire(Timer::Purpose::kStandby);
  host.Do(StandbyConnected{2});

  host.Do(StartOrder(1, {{0, 0}}));
  EXPECT_THAT(Taken(host), ElementsAre(1));
  StartOrdered other = StartOrder(1, {{0, 1}});
  other.generation = Generation(1, "j-2");
  host.Do(other);
  EXPECT_THAT(Taken(host), ElementsAre(2));
}

TEST(Standby, OneWhoseShimIsNotThereYetIsNotTaken) {
  Host host = HostWith(1);
  host.Fire(Timer::Purpose::kStandby);

  host.Do(StartOrder(1));

  EXPECT_THAT(Taken(host), ElementsAre(0));
  EXPECT_THAT(host.state.standbys, SizeIs(1));
}

TEST(Standby, JobsThatSetWhatLibrariesReadOnceGetAFreshProcess) {
  for (const char* name : {"OMP_NUM_THREADS", "LD_PRELOAD", "ONEDNN_MAX_CPU_ISA", "CUDA_VISIBLE_DEVICES"}) {
    Host host = HostWith(1);
    Load(host);
    StartOrdered order = StartOrder(1);
    order.start.env = {{"FLAVOUR", "vanilla"}, {name, "x"}};

    host.Do(order);

    EXPECT_THAT(Taken(host), ElementsAre(0)) << name;
    EXPECT_THAT(host.state.standbys, SizeIs(1)) << name;
  }
}

TEST(Standby, AnyOtherEnvironmentCanBeGivenToIt) {
  Host host = HostWith(1);
  Load(host);
  StartOrdered order = StartOrder(1);
  order.start.env = {{"FLAVOUR", "vanilla"}};

  host.Do(order);

  EXPECT_THAT(Taken(host), ElementsAre(1));
}

TEST(Standby, RefusedStartsTakeNone) {
  Host host = HostWith(1);
  Load(host);

  host.Do(StartOrder(1, {{0, 9}}));

  EXPECT_THAT(host.state.standbys, SizeIs(1));
}

TEST(Standby, AUsedOneIsReplacedWhenTheRanksHaveSettled) {
  Host host = HostWith(1);
  Load(host);

  host.Do(StartOrder(1));
  ASSERT_THAT(Delays(host), SizeIs(1));
  EXPECT_GT(Delays(host)[0], absl::ZeroDuration());
  host.Fire(Timer::Purpose::kStandby);
  EXPECT_THAT(host.Last<StartStandby>(), IsEmpty()) << "the rank is not ready yet";
  host.Do(ShimConnected{Generation(1), 0});
  host.Say(1, 0, contract::Ready{});
  host.Fire(Timer::Purpose::kStandby);

  EXPECT_THAT(host.Last<StartStandby>(), SizeIs(1));
}

TEST(Standby, OneThatEndsIsReplacedEverMoreSlowlyUntilOneIsReady) {
  Host host = HostWith(1);
  std::vector<absl::Duration> delays;

  for (int64_t number = 1; number <= 9; ++number) {
    host.Fire(Timer::Purpose::kStandby);
    host.Do(StandbyEnded{.number = number, .why = "signal 9"});
    for (absl::Duration delay : Delays(host)) delays.push_back(delay);
  }

  EXPECT_THAT(delays, ElementsAre(absl::Seconds(1), absl::Seconds(2), absl::Seconds(4), absl::Seconds(8),
                                  absl::Seconds(16), absl::Seconds(32), absl::Seconds(60), absl::Seconds(60),
                                  absl::Seconds(60)));
  Load(host);
  host.Do(StandbyEnded{.number = 10, .why = "signal 9"});
  EXPECT_THAT(Delays(host), ElementsAre(absl::Seconds(1)));
}

TEST(Standby, ItIsNoProcessOfAGenerationAndNothingIsToldOfItButItsMemory) {
  Host host = HostWith(1);
  Load(host);

  host.Do(StopOrdered{.generation = Generation(1)});
  EXPECT_THAT(host.Sent<GangReleased>(), SizeIs(1));
  EXPECT_THAT(host.state.standbys, SizeIs(1));
  host.Fire(Timer::Purpose::kHeartbeat);
  ASSERT_THAT(host.Sent<Heartbeat>(), SizeIs(1));
  EXPECT_EQ(host.Sent<Heartbeat>()[0].standbys_ready, 1);
  EXPECT_EQ(host.Sent<Heartbeat>()[0].standby_memory_bytes, 1000);
  host.Disconnect().Do(CoordinatorConnected{});
  EXPECT_THAT(host.Sent<Hello>()[0].shims, IsEmpty());
}

TEST(Standby, ANewAgentTakesOverWhatItFindsAndEndsWhatIsTooMuch) {
  Host host;
  host.state.standbys_wanted = 1;

  host.Do(StandbyConnected{17}).Do(StandbyConnected{18});
  EXPECT_THAT(host.Last<EndStandby>(), SizeIs(1));
  EXPECT_EQ(host.Last<EndStandby>()[0].number, 18);
  host.Start().Connect();

  EXPECT_THAT(Delays(host), IsEmpty());
  host.Do(StartOrder(1));
  EXPECT_THAT(Taken(host), ElementsAre(17));
  host.Exit(1, 0).Fire(Timer::Purpose::kStandby);
  ASSERT_THAT(host.Last<StartStandby>(), SizeIs(1));
  EXPECT_GT(host.Last<StartStandby>()[0].number, 17);
}

}  // namespace
}  // namespace llmctl::agent
