#include "worker/shim/memory_kills.h"

#include <string>

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace llmctl::shim
