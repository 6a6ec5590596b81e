#include "coordinator/runtime/lease_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace llmctl::runtime {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const NodeId kA("host-a");
const NodeId kB("host-b");

Instant At(double seconds) { return {absl::Seconds(seconds), absl::FromUnixSeconds(1000) + absl::Seconds(seconds)}; }

TEST(LeaseTable, SilentHostExpiresOnceWhenItsLeaseEnds) {
  LeaseTable leases(absl::Seconds(10));
  leases.Grant(kA, 1, At(0));

  EXPECT_THAT(leases.TakeExpired(At(9.9)), IsEmpty());
  EXPECT_THAT(leases.TakeExpired(At(10)), ElementsAre(LeaseTable::Expired{kA, 1}));
  EXPECT_THAT(leases.TakeExpired(At(100)), IsEmpty());
}

TEST(LeaseTable, TheNextEndIsThatOfTheFirstLeaseThatIsLeft) {
  LeaseTable leases(absl::Seconds(10));
  EXPECT_EQ(leases.next_deadline(), absl::InfiniteDuration());
  leases.Grant(kA, 1, At(0));
  leases.Grant(kB, 1, At(3));

  leases.TakeExpired(At(5));
  EXPECT_EQ(leases.next_deadline(), absl::Seconds(10));
  leases.TakeExpired(At(10));
  EXPECT_EQ(leases.next_deadline(), absl::Seconds(13));
  leases.TakeExpired(At(13));
  EXPECT_EQ(leases.next_deadline(), absl::InfiniteDuration());
}

TEST(LeaseTable, HeartbeatRenewsOnlyItsOwnIncarnation) {
  LeaseTable leases(absl::Seconds(10));
  leases.Grant(kA, 2, At(0));
  leases.Grant(kB, 1, At(0));

  leases.Renew(kA, 1, At(8));  // of an agent that was replaced
  leases.Renew(kB, 1, At(8));

  EXPECT_THAT(leases.TakeExpired(At(12)), ElementsAre(LeaseTable::Expired{kA, 2}));
  EXPECT_TRUE(leases.Holds(kB, 1));
}

TEST(LeaseTable, ReservedLeaseDoesNotRunOutBeforeItsWelcome) {
  // Two connections of one agent, and a disk that takes a minute: each welcome grants a lease when it leaves.
  LeaseTable leases(absl::Seconds(10));
  leases.Reserve(kA, 1);
  leases.Reserve(kA, 1);

  EXPECT_THAT(leases.TakeExpired(At(60)), IsEmpty());
  EXPECT_EQ(leases.next_deadline(), absl::InfiniteDuration()) << "nothing to wake up for";
  leases.Grant(kA, 1, At(60));
  EXPECT_THAT(leases.TakeExpired(At(90)), IsEmpty()) << "the second welcome is still on the way";
  leases.Grant(kA, 1, At(90));
  EXPECT_THAT(leases.TakeExpired(At(100)), ElementsAre(LeaseTable::Expired{kA, 1}));
}

TEST(LeaseTable, WelcomeOfAnAgentThatWasReplacedGrantsNothing) {
  LeaseTable leases(absl::Seconds(10));
  leases.Reserve(kA, 1);
  leases.Reserve(kA, 2);

  leases.Grant(kA, 1, At(0));

  EXPECT_FALSE(leases.Holds(kA, 1));
  EXPECT_THAT(leases.TakeExpired(At(60)), IsEmpty());
  leases.Grant(kA, 2, At(60));
  EXPECT_THAT(leases.TakeExpired(At(70)), ElementsAre(LeaseTable::Expired{kA, 2}));
}

TEST(LeaseTable, HeartbeatOfAHostWithoutLeaseGrantsNone) {
  LeaseTable leases(absl::Seconds(10));

  leases.Renew(kA, 1, At(0));

  EXPECT_FALSE(leases.Holds(kA, 1));
}

TEST(LeaseTable, AdmittedIncarnationTakesThePlaceOfTheOther) {
  LeaseTable leases(absl::Seconds(10));
  leases.Grant(kA, 7, At(0));

  leases.Grant(kA, 1, At(5));  // after a wiped state directory the agent counts anew

  EXPECT_FALSE(leases.Holds(kA, 7));
  EXPECT_THAT(leases.TakeExpired(At(14)), IsEmpty());
  EXPECT_THAT(leases.TakeExpired(At(15)), ElementsAre(LeaseTable::Expired{kA, 1}));
}

TEST(LeaseTable, OwnStallCostsNoHostItsLease) {
  LeaseTable leases(absl::Seconds(10));
  leases.Grant(kA, 1, At(0));
  leases.Grant(kB, 1, At(0));

  // The coordinator was stopped from 5 to 65; a's renewal was queued meanwhile, b's was lost.
  leases.Extend(absl::Seconds(60));
  leases.Renew(kA, 1, At(65));

  EXPECT_THAT(leases.TakeExpired(At(69)), IsEmpty());
  EXPECT_THAT(leases.TakeExpired(At(70)), ElementsAre(LeaseTable::Expired{kB, 1}));
  EXPECT_THAT(leases.TakeExpired(At(75)), ElementsAre(LeaseTable::Expired{kA, 1}));
}

TEST(LeaseTable, HostsThatHungUpDuringAStallHaveTimeToComeBack) {
  LeaseTable leases(absl::Seconds(2));
  leases.Grant(kA, 1, At(0));
  leases.Grant(kB, 1, At(0));

  // Stopped from 1.9 to 31.9: a tenth of a second would be left.
  leases.Extend(absl::Seconds(30));
  leases.KeepUntil(absl::Seconds(36.9));
  leases.Grant(kB, 1, At(36));
  leases.KeepUntil(absl::Seconds(37));

  EXPECT_THAT(leases.TakeExpired(At(36.8)), IsEmpty());
  EXPECT_THAT(leases.TakeExpired(At(37)), ElementsAre(LeaseTable::Expired{kA, 1}));
  EXPECT_THAT(leases.TakeExpired(At(38)), ElementsAre(LeaseTable::Expired{kB, 1}));
}

}  // namespace
}  // namespace llmctl::runtime
