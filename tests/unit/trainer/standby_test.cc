#include "worker/trainer/standby.h"

#include <unistd.h>

#include <cstdlib>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "common/base/file.h"
#include "tests/unit/temporary_directory.h"
#include "tests/unit/trainer/shim_end.h"
#include "worker/contract/shim_config.h"
#include "worker/trainer/shim_link.h"

namespace llmctl::trainer {
namespace {

TEST(Standby, WaitsForTheShimsFirstWordAndLeavesItInTheLink) {
  ShimEnd shim;
  std::thread agent([&] {
    EXPECT_TRUE(shim.HearA<contract::Waiting>().has_value());
    shim.SayHello();
    shim.Say(contract::Assignment{.generation = {JobId("j-1"), 1, 4}, .rank = 2});
  });

  absl::StatusOr<bool> job = AwaitJob(shim.trainer_fd());

  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_TRUE(*job);
  agent.join();
  ShimLink link(shim.trainer_fd());
  ASSERT_TRUE(link.Wait(absl::Seconds(20)));
  std::vector<contract::Message> said = link.Take();
  ASSERT_EQ(said.size(), 1u);
  EXPECT_EQ(std::get<contract::Assignment>(said[0]).rank, 2);
}

TEST(Standby, AShimThatGoesAwayHasNoJob) {
  ShimEnd shim;
  std::thread agent([&] {
    EXPECT_TRUE(shim.HearA<contract::Waiting>().has_value());
    shim.Close();
  });

  absl::StatusOr<bool> job = AwaitJob(shim.trainer_fd());

  agent.join();
  close(shim.trainer_fd());
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_FALSE(*job);
}

std::string Value(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "(none)" : value;
}

// Whoever calls it ends soon, as a trainer does: the environment of the test program stays.
TEST(Standby, TheEnvironmentOfTheRankTakesThePlaceOfItsOwnButForTheWayToTheShim) {
  TemporaryDirectory folder;
  contract::ShimConfig config = {.argv = {"trainer"}, .environment = {"FLAVOUR=vanilla=2", "EMPTY="}};
  ASSERT_TRUE(WriteFileAtomically(folder / "shim.json", contract::EncodeShimConfig(config)).ok());

  EXPECT_EXIT(
      {
        setenv("FLAVOUR", "none", 1);
        setenv("OF_THE_STANDBY", "1", 1);
        absl::Status taken = TakeEnvironment(folder / "shim.json", 5);
        bool right = taken.ok() && Value("FLAVOUR") == "vanilla=2" && Value("EMPTY").empty() &&
                     Value("OF_THE_STANDBY") == "(none)" && Value(contract::kShimFdVariable) == "5";
        _exit(right ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

TEST(Standby, WithoutARankThereIsNoEnvironment) {
  TemporaryDirectory folder;

  EXPECT_EQ(TakeEnvironment(folder / "shim.json", 5).code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace llmctl::trainer
