#include "worker/shim/memory_kills.h"

#include <cstdint>
#include <optional>
#include <string>

#include <gtest/gtest.h>
#include "absl/strings/str_cat.h"

#include "common/base/file.h"
#include "tests/unit/temporary_directory.h"

namespace llmctl::shim {
namespace {

class MemoryKillsTest : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* folder : {"proc/self", "cgroup/memory/job/7", "cgroup/unified/job"}) {
      ASSERT_TRUE(MakeDirectories(folder_ / folder).ok());
    }
    Write("proc/vmstat", "nr_free_pages 17\noom_kill 3\n");
  }

  void Write(const std::string& name, const std::string& text) {
    ASSERT_TRUE(WriteFileAtomically(folder_ / name, text).ok());
  }

  MemoryKills Kills() const { return MemoryKills(folder_ / "proc", folder_ / "cgroup"); }

  TemporaryDirectory folder_;
};

TEST_F(MemoryKillsTest, CountsThoseOfTheProcessesOwnGroup) {
  Write("proc/self/cgroup", "5:cpu:/\n4:memory:/job/7\n0::/\n");
  Write("cgroup/memory/job/7/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n");
  MemoryKills kills = Kills();

  EXPECT_EQ(kills.Count(), 1);
  Write("cgroup/memory/job/7/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n");
  EXPECT_EQ(kills.Count(), 2);
}

TEST_F(MemoryKillsTest, ReadsTheUnifiedHierarchyToo) {
  Write("proc/self/cgroup", "0::/unified/job\n");
  Write("cgroup/unified/job/memory.events", "low 0\noom 4\noom_kill 2\noom_group_kill 0\n");

  EXPECT_EQ(Kills().Count(), 2);
}

TEST_F(MemoryKillsTest, AProcessInNoGroupIsTheHosts) {
  Write("proc/self/cgroup", "0::/\n");

  EXPECT_EQ(Kills().Count(), 3);
}

TEST_F(MemoryKillsTest, KernelThatDoesNotSayIsNotGuessedAt) {
  Write("proc/vmstat", "nr_free_pages 17\n");

  EXPECT_EQ(Kills().Count(), -1);
}

class MemoryKillWatchTest : public MemoryKillsTest {
 protected:
  void SetUp() override {
    MemoryKillsTest::SetUp();
    Write("proc/self/cgroup", "0::/\n");
    watch_.emplace(Kills());
  }
  void KernelHasKilled(int count) { Write("proc/vmstat", absl::StrCat("oom_kill ", count, "\n")); }

  std::optional<MemoryKillWatch> watch_;
};

TEST_F(MemoryKillWatchTest, AKillOfAnyOtherProcessBeforeTheTrainerWasHeardIsNotItsOwn) {
  watch_->Heard(100'000);
  KernelHasKilled(4);
  EXPECT_TRUE(watch_->HasSeenKill());

  for (int64_t now = 100'000; now <= 110'000; now += 100) watch_->Heard(now);

  EXPECT_FALSE(watch_->HasSeenKill());
  KernelHasKilled(5);
  EXPECT_TRUE(watch_->HasSeenKill());
}

TEST_F(MemoryKillWatchTest, WhatItSaidBeforeItWasKilledMayBeReadAfter) {
  for (int64_t now = 100'000; now <= 110'000; now += 100) watch_->Heard(now);

  KernelHasKilled(4);
  for (int i = 0; i < 10; ++i) watch_->Heard(140'000);

  EXPECT_TRUE(watch_->HasSeenKill());
}

TEST_F(MemoryKillWatchTest, KillsWhileAStandbyWaitedAreNotThoseOfItsJob) {
  KernelHasKilled(4);

  watch_->Begin();

  EXPECT_FALSE(watch_->HasSeenKill());
}

}  // namespace
}  // namespace llmctl::shim
