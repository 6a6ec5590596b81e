#include "coordinator/placement/placement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace llmctl::placement {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class Cluster {
 public:
  Cluster& Host(const std::string& name, std::vector<int> free, std::map<int, JobId> taken = {},
                const std::string& flavor = "cpu") {
    snapshot.hosts.push_back({NodeId(name), std::move(free), std::move(taken), flavor});
    return *this;
  }
  Cluster& Job(int number, int workers_min, int workers_max, int devices = 1, int batch = 12) {
    Candidate candidate;
    candidate.job = JobId("j-" + std::to_string(number));
    candidate.order = number;
    candidate.requirements.workers_min = workers_min;
    candidate.requirements.workers_max = workers_max;
    candidate.requirements.devices_per_worker = devices;
    candidate.requirements.global_batch_size = batch;
    snapshot.candidates.push_back(candidate);
    return *this;
  }
  Cluster& Priority(int priority) {
    snapshot.candidates.back().requirements.priority = priority;
    return *this;
  }
  Cluster& Previous(std::vector<Slot> slots) {
    snapshot.candidates.back().previous = std::move(slots);
    return *this;
  }
  Plan Place() const { return MakePlan(snapshot); }

  Snapshot snapshot;
};

Slot At(const std::string& node, int device) { return {NodeId(node), device}; }

TEST(Placement, GangIsWholeOrNotAtAll) {
  Plan plan = Cluster().Host("a", {0}).Job(1, 2, 2).Place();

  EXPECT_THAT(plan.gangs, IsEmpty());
  ASSERT_THAT(plan.unplaced, SizeIs(1));
}

TEST(Placement, PriorityGoesFirstThenTheOrderOfSubmission) {
  Plan plan = Cluster().Host("a", {0, 1}).Job(1, 1, 1).Job(2, 1, 1).Job(3, 1, 1).Priority(90).Place();

  ASSERT_THAT(plan.gangs, SizeIs(2));
  EXPECT_EQ(plan.gangs[0].job, JobId("j-3"));
  EXPECT_EQ(plan.gangs[1].job, JobId("j-1"));
  EXPECT_EQ(plan.unplaced[0].job, JobId("j-2"));
}

TEST(Placement, ABlockedJobDoesNotBlockASmallerOne) {
  Plan plan = Cluster().Host("a", {0}).Job(1, 4, 4).Job(2, 1, 1).Place();

  ASSERT_THAT(plan.gangs, SizeIs(1));
  EXPECT_EQ(plan.gangs[0].job, JobId("j-2"));
}

TEST(Placement, TakesAsManyWorkersAsFitWithinTheBounds) {
  EXPECT_THAT(Cluster().Host("a", {0, 1, 2}).Job(1, 1, 2).Place().gangs[0].slots, SizeIs(2));
  EXPECT_THAT(Cluster().Host("a", {0}).Job(1, 1, 2).Place().gangs[0].slots, SizeIs(1));
}

TEST(Placement, PrefersAWorldThatDividesTheBatch) {
  Plan plan = Cluster().Host("a", {0, 1, 2, 3, 4}).Job(1, 1, 5, 1, /*batch=*/12).Place();

  EXPECT_THAT(plan.gangs[0].slots, SizeIs(4)) << "5 does not divide 12";
  EXPECT_THAT(Cluster().Host("a", {0, 1, 2, 3, 4}).Job(1, 5, 5, 1, 12).Place().gangs[0].slots, SizeIs(5))
      << "nothing else is allowed";
}

TEST(Placement, NeverHasMoreRanksThanSequences) {
  Plan plan = Cluster().Host("a", {0, 1, 2, 3}).Job(1, 4, 4, 1, /*batch=*/2).Place();

  EXPECT_THAT(plan.gangs, IsEmpty());
  EXPECT_THAT(plan.unplaced[0].reason, HasSubstr("can never run"));
}

TEST(Placement, AWorkersDevicesAreOnOneHost) {
  Plan plan = Cluster().Host("a", {0}).Host("b", {1}).Host("c", {0, 1}).Job(1, 1, 1, 2).Place();

  EXPECT_THAT(plan.gangs[0].slots, ElementsAre(At("c", 0), At("c", 1)));
}

TEST(Placement, PacksOntoTheFewestHostsAndTheTightest) {
  Plan plan = Cluster().Host("a", {0, 1, 2, 3}).Host("b", {0, 1}).Host("c", {0}).Job(1, 2, 2).Place();

  EXPECT_THAT(plan.gangs[0].slots, ElementsAre(At("b", 0), At("b", 1)));
}

TEST(Placement, KeepsRanksWhereTheyWere) {
  Plan plan = Cluster()
                  .Host("a", {0, 1})
                  .Host("b", {0})
                  .Host("c", {0})
                  .Job(1, 3, 3)
                  .Previous({At("c", 0), At("lost", 0), At("b", 0)})
                  .Place();

  EXPECT_THAT(plan.gangs[0].slots, ElementsAre(At("c", 0), At("a", 0), At("b", 0)));
}

TEST(Placement, DoesNotMixFlavors) {
  Cluster cluster;
  cluster.Host("a", {0}, {}, "cpu").Host("b", {0}, {}, "cuda").Job(1, 2, 2);

  EXPECT_THAT(cluster.Place().gangs, IsEmpty());
  EXPECT_THAT(cluster.Place().unplaced[0].reason, HasSubstr("differ in trainer build or kind of device"));
}

TEST(Placement, SaysWhoTookWhatIsMissing) {
  Plan plan = Cluster().Host("node-a", {0}).Host("node-b", {}, {{0, JobId("j-3")}}).Job(4, 2, 2).Place();

  EXPECT_EQ(plan.unplaced[0].reason,
            "needs 2 workers with 1 free device each; 1 of 2 connected hosts has room (node-b: taken by j-3)");
}

TEST(Placement, SaysThatHostsAreMissing) {
  Cluster cluster;
  cluster.snapshot.unreachable.push_back(NodeId("node-c"));

  EXPECT_EQ(cluster.Job(1, 1, 1).Place().unplaced[0].reason,
            "needs 1 worker with 1 free device; no host is connected; without a link: node-c; start llm-worker on one");
}

TEST(Placement, ManyJobsOfOneShapeAreAllPlacedUntilNoRoomIsLeft) {
  Cluster cluster;
  cluster.Host("a", {0, 1}).Host("b", {0});
  for (int number = 1; number <= 2000; ++number) cluster.Job(number, 1, 1);
  cluster.Job(2001, 1, 1, 2).Job(2002, 1, 2);

  Plan plan = cluster.Place();

  EXPECT_THAT(plan.gangs, SizeIs(3));
  ASSERT_THAT(plan.unplaced, SizeIs(1999));
  EXPECT_EQ(plan.unplaced.front().job, JobId("j-4"));
  EXPECT_EQ(plan.unplaced.front().reason, plan.unplaced[1000].reason);
  EXPECT_THAT(plan.unplaced[1997].reason, HasSubstr("2 free devices"));
}

TEST(Placement, PlanRepeatsWhatItWasMadeOf) {
  Cluster cluster;
  cluster.snapshot.revision = 7;
  cluster.snapshot.room = 3;
  cluster.snapshot.whole_queue = false;

  Plan plan = cluster.Place();

  EXPECT_EQ(plan.revision, 7);
  EXPECT_EQ(plan.room, 3);
  EXPECT_FALSE(plan.whole_queue);
}

TEST(Placement, JobsOfOnePlanDoNotShareADevice) {
  Plan plan = Cluster().Host("a", {0, 1}).Job(1, 1, 1).Job(2, 1, 1).Job(3, 1, 1).Place();

  ASSERT_THAT(plan.gangs, SizeIs(2));
  EXPECT_NE(plan.gangs[0].slots[0], plan.gangs[1].slots[0]);
  EXPECT_THAT(plan.unplaced[0].reason, HasSubstr("taken by j-1, j-2"));
}

}  // namespace
}  // namespace llmctl::placement
