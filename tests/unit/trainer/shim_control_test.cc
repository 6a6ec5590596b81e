#include "worker/trainer/shim_control.h"

#include <atomic>
#include <cerrno>

#include <gtest/gtest.h>

#include "common/base/status.h"
#include "tests/unit/trainer/shim_end.h"
#include "worker/trainer/failure.h"

namespace llmctl::trainer {
namespace {

// Takes until something of interest has come; `requests` adds up.
template <typename Predicate>
Requests TakeUntil(ShimControl& control, Predicate done) {
  Requests requests = control.Take();
  while (!done(requests)) {
    control.Wait(absl::Seconds(1));
    requests = control.Take();
  }
  return requests;
}

TEST(ShimControl, WaitsForItsAssignment) {
  ShimEnd shim;
  ShimLink link(shim.trainer_fd());
  std::atomic<bool> terminated = false;
  ShimControl control(link, terminated);
  shim.SayHello();
  shim.Say(contract::Assignment{.generation = {JobId("j-1"), 2, 3}, .rank = 1, .world_size = 4});

  auto assignment = control.WaitForAssignment();

  ASSERT_TRUE(assignment.ok()) << assignment.status();
  EXPECT_EQ(assignment->rank, 1);
  EXPECT_EQ(assignment->generation.generation, 3);
}

TEST(ShimControl, ASecondGenerationHaltsTheRun) {
  ShimEnd shim;
  ShimLink link(shim.trainer_fd());
  std::atomic<bool> terminated = false;
  ShimControl control(link, terminated);
  shim.SayHello();
  shim.Say(contract::Assignment{.generation = {JobId("j-1"), 1, 1}, .world_size = 1});
  ASSERT_TRUE(control.WaitForAssignment().ok());

  shim.Say(contract::Assignment{.generation = {JobId("j-1"), 1, 2}, .world_size = 1});

  Requests requests = TakeUntil(control, [](const Requests& r) { return r.halt.has_value(); });
  EXPECT_EQ(requests.halt->exit_code, contract::kExitInfrastructure);
}

TEST(ShimControl, ALostShimMeansOrphaned) {
  ShimEnd shim;
  ShimLink link(shim.trainer_fd());
  std::atomic<bool> terminated = false;
  ShimControl control(link, terminated);
  shim.SayHello();
  shim.Close();

  auto assignment = control.WaitForAssignment();

  ASSERT_FALSE(assignment.ok());
  EXPECT_EQ(ExitCodeOf(assignment.status()), contract::kExitOrphaned);
}

TEST(ShimControl, YieldAndTerminationAskForTheSame) {
  ShimEnd shim;
  ShimLink link(shim.trainer_fd());
  std::atomic<bool> terminated = false;
  ShimControl control(link, terminated);
  EXPECT_FALSE(control.Take().yield.has_value());

  terminated = true;
  EXPECT_EQ(control.Take().yield, "SIGTERM");

  terminated = false;
  shim.SayHello();
  shim.Say(contract::Yield{.reason = "preempted"});
  Requests requests = TakeUntil(control, [](const Requests& r) { return r.yield.has_value(); });
  EXPECT_EQ(*requests.yield, "preempted");
}

TEST(ShimControl, AnUpdateIsRefused) {
  ShimEnd shim;
  ShimLink link(shim.trainer_fd());
  std::atomic<bool> terminated = false;
  ShimControl control(link, terminated);
  shim.SayHello();
  shim.Say(contract::Update{.settings_json = "{\"training\":{}}"});

  ASSERT_TRUE(link.Wait(absl::Seconds(20)));
  control.Take();

  auto result = shim.HearA<contract::UpdateResult>();
  ASSERT_TRUE(result.has_value());
  EXPECT_NE(result->error, "");
}

TEST(ExitCodeOf, FollowsTheStatusUnlessOneIsAttached) {
  EXPECT_EQ(ExitCodeOf(absl::NotFoundError("no dataset")), contract::kExitConfig);
  EXPECT_EQ(ExitCodeOf(absl::UnavailableError("a peer is gone")), contract::kExitInfrastructure);
  // A full disk, or too many open files: not memory, unless who knows says so.
  for (int error : {ENOSPC, EDQUOT, EMFILE, ENFILE}) {
    EXPECT_EQ(ExitCodeOf(ErrnoStatus(error, "create a file")), contract::kExitInfrastructure) << error;
  }
  EXPECT_EQ(ExitCodeOf(WithExitCode(absl::AbortedError("NaN"), contract::kExitUser)), contract::kExitUser);
}

}  // namespace
}  // namespace llmctl::trainer
