#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/cluster/address.h"
#include "client/local/cluster_directory.h"
#include "client/local/daemon_commands.h"
#include "client/local/local_state.h"
#include "client/local/supervisor.h"
#include "common/base/file.h"

namespace llmctl::client {
namespace {

using testing::Contains;
using testing::HasSubstr;

TEST(RestartPause, IsNoneAtFirstThenGrowsToABound) {
  EXPECT_EQ(RestartPause(1), absl::ZeroDuration());
  EXPECT_EQ(RestartPause(2), absl::Milliseconds(200));
  EXPECT_EQ(RestartPause(3), absl::Milliseconds(400));
  EXPECT_EQ(RestartPause(1000), absl::Seconds(5));
}

TEST(FileLock, IsSeenByOthersUntilItsHolderIsGone) {
  std::string path = testing::TempDir() + "/supervisor.lock";
  {
    absl::StatusOr<FileLock> lock = FileLock::Acquire(path);
    ASSERT_TRUE(lock.ok()) << lock.status();

    EXPECT_TRUE(IsLocked(path));
    EXPECT_EQ(FileLock::Acquire(path).status().code(), absl::StatusCode::kFailedPrecondition);
  }

  EXPECT_FALSE(IsLocked(path));
  EXPECT_TRUE(FileLock::Acquire(path).ok());
}

TEST(LocalState, ReadsBackWhatWasWritten) {
  LocalState state{.pid = 7, .workers = 2, .devices_per_worker = 3, .start_time = 11};
  state.daemons.push_back({"coordinator", 8, 1, "signal 9"});

  absl::StatusOr<LocalState> again = DecodeLocalState(EncodeLocalState(state));

  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(EncodeLocalState(*again), EncodeLocalState(state));
  EXPECT_EQ(DecodeLocalState("{}").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(DecodeLocalState("not json").status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(DaemonCommands, GivesEachDaemonFilesOfItsOwn) {
  ClusterDirectory directory("/c/");

  std::vector<DaemonCommand> commands =
      DaemonCommands(directory, {.workers = 2, .devices_per_worker = 2, .cores = 8}, {"/b/coordinator", "/b/worker"});

  ASSERT_EQ(commands.size(), 3u);
  EXPECT_THAT(commands[0].arguments, Contains("--lease=2s"));
  EXPECT_THAT(commands[0].arguments, Contains("--heartbeat-interval=500ms"));
  EXPECT_THAT(commands[0].arguments, Contains("--address-file=/c/coordinator.address"));
  EXPECT_EQ(commands[2].name, "worker-1");
  EXPECT_EQ(commands[2].log_file, "/c/logs/worker-1.log");
  EXPECT_THAT(commands[2].arguments, Contains("--coordinator=@/c/coordinator.address"));
  EXPECT_THAT(commands[2].arguments, Contains("--devices=cpu:2"));
  EXPECT_THAT(commands[2].arguments, Contains("--threads-per-device=2")) << "8 cores for 4 devices";
}

TEST(LogTail, GivesTheLastLines) {
  std::string path = testing::TempDir() + "/tail.log";
  ASSERT_EQ(WriteFileAtomically(path, "one\ntwo\nthree\n"), absl::OkStatus());

  EXPECT_EQ(LogTail(path, 2), "two\nthree\n");
  EXPECT_EQ(LogTail(path, 9), "one\ntwo\nthree\n");
  EXPECT_EQ(LogTail(path + ".absent", 2), "");
}

TEST(FindCoordinator, PrefersTheFlagThenTheEnvironment) {
  EXPECT_EQ(FindCoordinator("a:1", "b:2").value, "a:1");
  EXPECT_EQ(FindCoordinator("", "b:2").value, "b:2");
  EXPECT_EQ(FindCoordinator("", "").value, "127.0.0.1:7600") << "where the tests run, no local cluster is up";
}

TEST(CoordinatorAddress, IsReadFromItsFileEachTime) {
  std::string path = testing::TempDir() + "/coordinator.address";
  CoordinatorAddress address{"@" + path, "--coordinator"};
  ASSERT_EQ(WriteFileAtomically(path, "127.0.0.1:1\n"), absl::OkStatus());
  EXPECT_EQ(*address.Resolve(), "127.0.0.1:1");
  ASSERT_EQ(WriteFileAtomically(path, "127.0.0.1:2\n"), absl::OkStatus());

  EXPECT_EQ(*address.Resolve(), "127.0.0.1:2");
}

TEST(CoordinatorAddress, TellsAFileThatIsNotThereYetFromNonsense) {
  EXPECT_EQ((CoordinatorAddress{"@/nowhere/x", "--coordinator"}).Resolve().status().code(),
            absl::StatusCode::kUnavailable);
  absl::StatusOr<std::string> nonsense = CoordinatorAddress{"localhost", "--coordinator"}.Resolve();
  EXPECT_EQ(nonsense.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(nonsense.status().message()), HasSubstr("expected HOST:PORT"));
}

}  // namespace
}  // namespace llmctl::client
