// Who is planned when: newcomers alone while room only shrinks, the whole queue when it may have grown.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "coordinator/core/snapshot_for_placement.h"
#include "coordinator/placement/placement.h"
#include "tests/unit/coordinator_core/core_world.h"

namespace llmctl::core {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::vector<std::string> Considered(const CoreWorld& world) {
  std::vector<std::string> ids;
  for (const placement::Candidate& one : MakeSnapshot(world.state).candidates) ids.push_back(one.job.value());
  return ids;
}

// One device, taken by the first of three jobs; the others wait.
struct FullCluster {
  FullCluster() {
    world.Connect("node-a");
    first = world.Submit();
    world.Run(first);
    second = world.Submit();
    third = world.Submit();
    world.Place();
    EXPECT_THAT(Considered(world), IsEmpty());
  }

  CoreWorld world;
  JobId first, second, third;
};

TEST(Planning, SubmissionToALongQueueIsConsideredAlone) {
  FullCluster cluster;

  JobId fourth = cluster.world.Submit();

  EXPECT_THAT(cluster.world.Sent<RequestPlan>(), SizeIs(1));
  EXPECT_THAT(Considered(cluster.world), ElementsAre(fourth.value()));
  cluster.world.Place();
  EXPECT_THAT(Considered(cluster.world), IsEmpty());
  EXPECT_TRUE(cluster.world.state.waiting_reason.contains(fourth));
}

TEST(Planning, WholeQueueIsConsideredWhenADeviceHasBecomeFree) {
  FullCluster cluster;

  cluster.world.ExitAll(cluster.first, ExitCode(0));
  cluster.world.ReleaseAll(cluster.first);

  EXPECT_THAT(Considered(cluster.world), ElementsAre(cluster.second.value(), cluster.third.value()));
  cluster.world.Place();
  EXPECT_EQ(cluster.world.job(cluster.second).phase, JobPhase::kStarting);
  EXPECT_THAT(Considered(cluster.world), IsEmpty());
}

TEST(Planning, RoomThatIsMadeWhileAPlanIsBeingMadeIsNotForgotten) {
  CoreWorld world;
  JobId id = world.Submit();
  Plan without_hosts = placement::MakePlan(MakeSnapshot(world.state));

  world.Connect("node-a");
  world.Do(PlanReady{without_hosts});

  EXPECT_THAT(Considered(world), ElementsAre(id.value()));
  world.Place();
  EXPECT_EQ(world.job(id).phase, JobPhase::kStarting);
}

TEST(Planning, DroppedGangMakesTheWholeQueueBePlannedAgain) {
  FullCluster cluster;
  Plan stale = placement::MakePlan(MakeSnapshot(cluster.world.state));
  JobId fourth = cluster.world.Submit();
  stale.gangs.push_back({fourth, {{NodeId("node-a"), 0}}});

  cluster.world.Do(PlanReady{stale});

  EXPECT_THAT(cluster.world.Sent<RequestPlan>(), SizeIs(1));
  EXPECT_THAT(Considered(cluster.world), SizeIs(3));
}

TEST(Planning, ResumedJobIsANewcomer) {
  FullCluster cluster;
  cluster.world.Do(JobSuspended{1, cluster.second});
  EXPECT_FALSE(cluster.world.state.waiting_reason.contains(cluster.second));

  cluster.world.Do(JobResumed{2, cluster.second});

  EXPECT_THAT(cluster.world.Sent<RequestPlan>(), SizeIs(1));
  EXPECT_THAT(Considered(cluster.world), ElementsAre(cluster.second.value()));
}

TEST(Planning, EndedJobsAreNotLookedAt) {
  FullCluster cluster;
  cluster.world.Do(JobCancelled{1, cluster.second, ""});
  cluster.world.Do(JobDeleted{2, cluster.second});
  cluster.world.ExitAll(cluster.first, ExitCode(0));

  EXPECT_THAT(cluster.world.state.index.queued, ElementsAre(cluster.third));
  EXPECT_THAT(cluster.world.state.index.with_gang, IsEmpty());
}

TEST(Planning, RestartConsidersAll) {
  FullCluster cluster;

  cluster.world.Restart();

  EXPECT_THAT(Considered(cluster.world), ElementsAre(cluster.second.value(), cluster.third.value()));
}

}  // namespace
}  // namespace llmctl::core
