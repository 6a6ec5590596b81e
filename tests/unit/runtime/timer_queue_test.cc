#include "coordinator/runtime/timer_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace llmctl::runtime {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Instant At(double seconds) { return {absl::Seconds(seconds), absl::FromUnixSeconds(1000) + absl::Seconds(seconds)}; }

core::ArmTimer Wait(int64_t timer, double seconds) { return {timer, absl::Seconds(seconds), /*awaits_others=*/true}; }
core::ArmTimer Wish(int64_t timer, double seconds) { return {timer, absl::Seconds(seconds), /*awaits_others=*/false}; }

TEST(TimerQueue, TimersAreDueOnceAndInTheirOrder) {
  TimerQueue timers;
  EXPECT_EQ(timers.next_due(), absl::InfiniteDuration());
  timers.Arm(Wait(1, 30), At(0));
  timers.Arm(Wish(2, 5), At(1));
  timers.Arm(Wish(3, 4), At(2));

  EXPECT_EQ(timers.next_due(), absl::Seconds(6));
  EXPECT_THAT(timers.TakeDue(At(5.9)), IsEmpty());
  EXPECT_THAT(timers.TakeDue(At(6)), ElementsAre(2, 3));
  EXPECT_EQ(timers.next_due(), absl::Seconds(30));
  EXPECT_THAT(timers.TakeDue(At(100)), ElementsAre(1));
  EXPECT_THAT(timers.TakeDue(At(100)), IsEmpty());
}

TEST(TimerQueue, WhoeverIsWaitedForDoesNotPayForOurStall) {
  TimerQueue timers;
  timers.Arm(Wait(1, 30), At(0));
  timers.Arm(Wish(2, 20), At(0));

  // Stood still from 10 to 40.
  timers.Extend(absl::Seconds(30), absl::Seconds(40));

  EXPECT_THAT(timers.TakeDue(At(40)), ElementsAre(2)) << "a wish is owed at its time";
  EXPECT_THAT(timers.TakeDue(At(59.9)), IsEmpty());
  EXPECT_THAT(timers.TakeDue(At(60)), ElementsAre(1));
}

TEST(TimerQueue, WhoeverIsWaitedForGetsTheTimeToComeBack) {
  TimerQueue timers;
  timers.Arm(Wait(1, 11), At(0));

  // A second of patience was left, but the hosts have hung up and need some to be heard again.
  timers.Extend(absl::Seconds(30), absl::Seconds(55));

  EXPECT_THAT(timers.TakeDue(At(54.9)), IsEmpty());
  EXPECT_THAT(timers.TakeDue(At(55)), ElementsAre(1));
}

}  // namespace
}  // namespace llmctl::runtime
