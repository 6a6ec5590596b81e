// Which waits are for others: a coordinator that stood still does not hold its own absence against them.
#include <map>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/coordinator_core/core_world.h"

namespace llmctl::core {
namespace {

using Purpose = Timer::Purpose;

// Those that the last step has armed, as the runtime is told of them.
std::map<Purpose, bool> Armed(CoreWorld& world) {
  std::map<Purpose, bool> awaits;
  for (const ArmTimer& armed : world.Sent<ArmTimer>()) {
    awaits[world.state.timers.at(armed.timer).purpose] = armed.awaits_others;
  }
  return awaits;
}

std::map<Purpose, bool> One(Purpose purpose, bool awaits_others) { return {{purpose, awaits_others}}; }

TEST(Timers, WhatHostsMayTakeAwaitsThem) {
  CoreWorld world;
  world.Connect("node-a");
  JobId id = world.Submit();
  world.Place();
  EXPECT_EQ(Armed(world), One(Purpose::kProbe, true));

  world.AnswerProbes(id);
  EXPECT_EQ(Armed(world), One(Purpose::kStart, true));

  world.ReportAll(id, RankPhase::kRunning);
  world.Do(NodeDrainStarted{1, NodeId("node-a"), "new disks", absl::Minutes(5)});
  EXPECT_EQ(Armed(world), (std::map<Purpose, bool>{{Purpose::kStop, true}, {Purpose::kDrain, true}}));
}

TEST(Timers, GraceAfterAStartAwaitsTheHosts) {
  CoreWorld world;
  world.Connect("node-a");

  world.Restart();

  EXPECT_EQ(Armed(world), One(Purpose::kGrace, true));
}

TEST(Timers, WhatIsOwedAtATimeAwaitsNobody) {
  CoreWorld world;
  world.Connect("node-a");
  JobRequirements needs = CoreWorld::Needs(1);
  needs.time_limit = absl::Hours(1);
  JobId id = world.Submit(needs);
  world.Place();
  world.AnswerProbes(id);
  world.ReportAll(id, RankPhase::kRunning);
  EXPECT_EQ(Armed(world), One(Purpose::kTimeLimit, false));

  world.FailOnce(id, KilledBy(9));  // tried again at once
  world.Run(id);
  world.FailOnce(id, KilledBy(9));
  ASSERT_EQ(world.job(id).phase, JobPhase::kBackoff);
  EXPECT_EQ(Armed(world), One(Purpose::kBackoff, false));
}

}  // namespace
}  // namespace llmctl::core
