#include "worker/agent/host/state_dir.h"

#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include "absl/strings/str_cat.h"

#include "common/base/file.h"

namespace llmctl::agent {
namespace {

using testing::HasSubstr;

class StateDirTest : public testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove_all(folder_); }

  const std::string folder_ = absl::StrCat(testing::TempDir(), "/state_dir_test_", ::getpid());
};

TEST_F(StateDirTest, OneAgentPerDirectory) {
  absl::StatusOr<StateDir> first = StateDir::Open(folder_);
  ASSERT_TRUE(first.ok()) << first.status();

  absl::StatusOr<StateDir> second = StateDir::Open(folder_);

  EXPECT_EQ(second.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(second.status().message()), HasSubstr("in use by another llm-worker"));
}

TEST_F(StateDirTest, TheIncarnationRisesWithEveryStart) {
  for (int64_t expected = 1; expected <= 3; ++expected) {
    EXPECT_EQ(*StateDir::Open(folder_)->NextIncarnation(), expected);
  }
}

TEST_F(StateDirTest, FencesAndOutboxComeBack) {
  State state;
  state.fences = {{JobId("j-1"), 4}, {JobId("j-2"), 1}};
  GenerationId generation = {.job = JobId("j-1"), .attempt = 2, .generation = 4};
  state.outbox[{generation, 7}] = {
      .request_id = 7, .step = 100, .path = "/c/\"odd\tname\"", .manifest_digest = "d", .next_sample = 800};
  {
    StateDir directory = *StateDir::Open(folder_);
    ASSERT_TRUE(directory.PersistFences(state, JobId("j-1")).ok());
    ASSERT_TRUE(directory.PersistOutbox(state).ok());
  }

  State loaded;
  ASSERT_TRUE(StateDir::Open(folder_)->Load(loaded).ok());

  EXPECT_EQ(loaded.fences, state.fences);
  ASSERT_EQ(loaded.outbox.size(), 1u);
  EXPECT_EQ(loaded.outbox.begin()->first, state.outbox.begin()->first);
  EXPECT_EQ(loaded.outbox.begin()->second.path, "/c/\"odd\tname\"");
  EXPECT_EQ(loaded.outbox.begin()->second.next_sample, 800);
}

TEST_F(StateDirTest, AFenceIsAddedWithoutWritingAllOthersAgain) {
  State state;
  for (int i = 0; i < 10000; ++i) state.fences[JobId(absl::StrCat("j-", i))] = 1;
  StateDir directory = *StateDir::Open(folder_);
  ASSERT_TRUE(directory.PersistFences(state, JobId("j-0")).ok());
  auto before = std::filesystem::file_size(folder_ + "/fences");

  for (int generation = 2; generation <= 4; ++generation) {
    state.fences[JobId("j-7")] = generation;
    ASSERT_TRUE(directory.PersistFences(state, JobId("j-7")).ok());
  }

  EXPECT_EQ(std::filesystem::file_size(folder_ + "/fences"), before + 3 * std::string("j-7\t2\n").size());
  State loaded;
  ASSERT_TRUE(directory.Load(loaded).ok());
  EXPECT_EQ(loaded.fences, state.fences);
}

TEST_F(StateDirTest, AFenceThatWasBeingAddedWhenTheHostWentDownIsNone) {
  StateDir directory = *StateDir::Open(folder_);
  ASSERT_TRUE(WriteFileAtomically(folder_ + "/fences", "j-1\t4\nj-2\t1").ok());
  State state;

  ASSERT_TRUE(directory.Load(state).ok());

  EXPECT_EQ(state.fences, (std::map<JobId, int64_t>{{JobId("j-1"), 4}}));
  state.fences[JobId("j-2")] = 2;
  ASSERT_TRUE(directory.PersistFences(state, JobId("j-2")).ok());
  State again;
  ASSERT_TRUE(directory.Load(again).ok());
  EXPECT_EQ(again.fences, state.fences);
}

TEST_F(StateDirTest, DamagedRecordsAreNamedNotSkipped) {
  StateDir directory = *StateDir::Open(folder_);
  ASSERT_TRUE(WriteFileAtomically(folder_ + "/fences", "j-1\tmany\n").ok());
  State state;

  absl::Status status = directory.Load(state);

  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr("/fences: expected job and generation, found \"j-1\tmany\""));
}

}  // namespace
}  // namespace llmctl::agent
