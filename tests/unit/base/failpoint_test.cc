#include "common/base/failpoint.h"

#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include "absl/strings/str_format.h"

#include "tests/unit/temporary_directory.h"

namespace llmctl {
namespace {

class Failpoints : public testing::Test {
 protected:
  // Armed for good: so each case arms a process of its own.
  template <typename Function>
  int InChild(const Function& function) {
    pid_t child = ::fork();
    if (child == 0) {
      function();
      ::fflush(stdout);
      ::_exit(0);
    }
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, WUNTRACED), child);
    if (WIFSTOPPED(status)) ::kill(child, SIGKILL);
    if (WIFSTOPPED(status)) ::waitpid(child, nullptr, 0);
    return status;
  }

  void Arm(absl::string_view rules) {
    absl::Status status = ArmFailpoints(rules, counts_);
    ASSERT_TRUE(status.ok()) << status;
  }

  uintmax_t Hits(const std::string& name) { return std::filesystem::file_size(counts_ + "/" + name); }

  TemporaryDirectory folder_;
  const std::string counts_ = folder_ / "counts";
};

TEST_F(Failpoints, KillsAtTheHitThatWasNamed) {
  int status = InChild([&] {
    Arm("a=kill@3");
    HitFailpoint("other");
    for (int i = 0; i < 5; ++i) HitFailpoint("a");
  });

  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGKILL);
  EXPECT_EQ(Hits("a"), 3u);
  EXPECT_FALSE(std::filesystem::exists(counts_ + "/other"));
}

TEST_F(Failpoints, CountGoesOnInTheNextProcessSoThatAHitComesOnce) {
  auto three_hits = [&] {
    Arm("a=kill@2");
    for (int i = 0; i < 3; ++i) HitFailpoint("a");
  };

  EXPECT_TRUE(WIFSIGNALED(InChild(three_hits)));
  EXPECT_TRUE(WIFEXITED(InChild(three_hits)));
  EXPECT_EQ(Hits("a"), 5u);
}

TEST_F(Failpoints, HitsOfManyThreadsAreEachCounted) {
  EXPECT_TRUE(WIFEXITED(InChild([&] {
    Arm("a=kill@1000000");
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([] {
        for (int hit = 0; hit < 500; ++hit) HitFailpoint("a");
      });
    }
    for (std::thread& thread : threads) thread.join();
  })));

  EXPECT_EQ(Hits("a"), 2000u);
}

TEST_F(Failpoints, Stops) {
  EXPECT_TRUE(WIFSTOPPED(InChild([&] {
    Arm("a=kill@7,a=stop");
    HitFailpoint("a");
  })));
}

TEST_F(Failpoints, PrintsNumberedLinesWhileTheProcessGoesOn) {
  std::string output = folder_ / "output";
  InChild([&] {
    ASSERT_NE(::freopen(output.c_str(), "w", stdout), nullptr);
    Arm("a=print:1280000:1");
    HitFailpoint("a");
    while (std::filesystem::file_size(output) < 1280000) std::this_thread::yield();
  });

  FILE* file = ::fopen(output.c_str(), "r");
  char line[256];
  int64_t count = 0;
  for (; ::fgets(line, sizeof line, file) != nullptr; ++count) {
    EXPECT_EQ(absl::string_view(line).substr(0, 28), absl::StrFormat("failpoint line %012d ", count));
    EXPECT_EQ(absl::string_view(line).size(), 128u);
  }
  ::fclose(file);
  EXPECT_EQ(count, 10000);
}

TEST_F(Failpoints, NothingIsArmedWithoutRules) {
  EXPECT_TRUE(WIFEXITED(InChild([&] {
    Arm("");
    HitFailpoint("a");
  })));
  EXPECT_FALSE(std::filesystem::exists(counts_));
}

TEST_F(Failpoints, WrongRulesAreNamed) {
  for (const char* rules : {"a", "=kill", "a=explode", "a=kill@0", "a=kill@x", "a=print", "a=print:0:1", "a=kill,"}) {
    absl::Status status = ArmFailpoints(rules, counts_);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << rules;
    EXPECT_NE(status.message().find("LLM_FAILPOINTS"), absl::string_view::npos) << status;
  }
  EXPECT_FALSE(ArmFailpoints("a=kill", "").ok());
}

}  // namespace
}  // namespace llmctl
