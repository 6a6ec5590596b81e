#include "worker/shim/log_file.h"

#include <signal.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include "absl/strings/str_cat.h"

#include "common/base/file.h"
#include "common/base/unique_fd.h"

namespace llmctl::shim {
namespace {

using testing::ElementsAre;

class LogFileTest : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(folder_);
    ASSERT_EQ(::chdir(folder_.c_str()), 0);
  }
  void TearDown() override {
    ASSERT_EQ(::chdir("/"), 0);
    std::filesystem::remove_all(folder_);
  }
  std::set<std::string> Files() {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) names.insert(entry.path().filename());
    return names;
  }

  std::string folder_ = absl::StrCat(testing::TempDir(), "/log_file_test_", ::getpid());
};

TEST_F(LogFileTest, TheOlderPartIsNamedAfterItsFirstByte) {
  LogFile log("out", 20);

  log.Append("0123456789abc");
  EXPECT_THAT(Files(), ElementsAre("out.0.log", "out.log"));
  EXPECT_EQ(*ReadFile("out.0.log"), "0123456789");
  EXPECT_EQ(*ReadFile("out.log"), "abc");
  log.Append("defghijKL");

  EXPECT_THAT(Files(), ElementsAre("out.10.log", "out.log"));
  EXPECT_EQ(*ReadFile("out.10.log"), "abcdefghij");
  EXPECT_EQ(*ReadFile("out.log"), "KL");
}

TEST_F(LogFileTest, OnePieceMayBeLongerThanAllThatIsKept) {
  LogFile log("out", 4);

  log.Append("0123456789");

  EXPECT_THAT(Files(), ElementsAre("out.6.log", "out.log"));
  EXPECT_EQ(*ReadFile("out.6.log"), "67");
  EXPECT_EQ(*ReadFile("out.log"), "89");
}

// A reader that comes between the two must be able to tell where the present part begins.
TEST_F(LogFileTest, ARotationRenamesBeforeItRemoves) {
  LogFile log("out", 20);
  log.Append("0123456789abcdefghij");
  UniqueFd watch(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  ASSERT_GE(::inotify_add_watch(watch.get(), folder_.c_str(), IN_MOVED_TO | IN_DELETE), 0);

  log.Append("K");

  alignas(inotify_event) char buffer[4096];
  ssize_t bytes = ::read(watch.get(), buffer, sizeof buffer);
  std::vector<std::string> events;
  for (ssize_t at = 0; at < bytes;) {
    const auto* event = reinterpret_cast<const inotify_event*>(buffer + at);
    events.push_back(absl::StrCat(event->mask & IN_DELETE ? "removed " : "renamed to ", event->name));
    at += sizeof *event + event->len;
  }
  EXPECT_THAT(events, ElementsAre("renamed to out.10.log", "removed out.0.log"));
}

TEST_F(LogFileTest, APartThatCannotBeRenamedBeginsAgainAtItsOffset) {
  std::filesystem::create_directories(folder_ + "/out.0.log/in the way");
  LogFile log("out", 20);

  log.Append("0123456789abc");

  EXPECT_EQ(*ReadFile("out.log"), "abc");
  EXPECT_EQ(log.lost_bytes(), 10);
}

TEST_F(LogFileTest, TheStreamSaysWhereItBrokeOff) {
  ::signal(SIGXFSZ, SIG_IGN);
  rlimit usual = {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &usual), 0);
  rlimit small = {.rlim_cur = 6, .rlim_max = usual.rlim_max};
  LogFile log("out", 1000);

  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  log.Append("one\n");
  log.Append("two\n");
  log.Append("three\n");
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &usual), 0);
  log.Append("four\n");

  EXPECT_EQ(*ReadFile("out.log"), "one\ntw\n[8 bytes of output are lost here: they could not be written]\nfour\n");
  EXPECT_EQ(log.lost_bytes(), 8);
}

TEST_F(LogFileTest, WhatCannotBeWrittenIsCounted) {
  LogFile log("no/such/folder/out", 100);

  log.Append("lost");

  EXPECT_EQ(log.lost_bytes(), 4);
}

}  // namespace
}  // namespace llmctl::shim
