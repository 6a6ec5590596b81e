// Stacks of a real process: pictured by the shim's own code, named from the files it had mapped.
#include "worker/agent/evidence/stack_text.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include "absl/strings/str_cat.h"

#include "common/base/file.h"
#include "worker/shim/picture_taker.h"

// Names that a symbol table knows, and calls that no compiler may fold away.
extern "C" {
[[gnu::noinline, gnu::used]] int WaitInTheDataLoader(int fd) {
  char byte = 0;
  int got = static_cast<int>(::read(fd, &byte, 1));
  asm volatile("");
  return got + 1;
}
[[gnu::noinline, gnu::used]] int TrainOneStep(int fd) {
  int got = WaitInTheDataLoader(fd);
  asm volatile("");
  return got + 1;
}
}

namespace llmctl::agent {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;

// False if it has not come to that within the deadline.
bool Sleeps(pid_t pid) {
  auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (std::chrono::steady_clock::now() < end) {
    std::string stat = ReadFile(absl::StrCat("/proc/", pid, "/stat")).value_or("");
    size_t at = stat.rfind(") ");
    if (at != std::string::npos && stat[at + 2] == 'S') return true;
    std::this_thread::yield();
  }
  return false;
}

contract::Picture PictureOfAWaitingChild() {
  int ready[2], never[2];
  EXPECT_EQ(::pipe(ready), 0);
  EXPECT_EQ(::pipe(never), 0);
  pid_t pid = ::fork();
  if (pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::close(ready[0]);
    ::close(ready[1]);
    ::_exit(TrainOneStep(never[0]));
  }
  ::close(ready[1]);
  char byte;
  EXPECT_EQ(::read(ready[0], &byte, 1), 0) << "the child closes its end when it is about to wait";
  EXPECT_TRUE(Sleeps(pid));
  shim::PictureTaker taker;
  contract::Picture picture = taker.Take(pid, "a test");
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
  return picture;
}

TEST(StackText, NamesTheCallersOfAProcessThatIsGone) {
  std::string text = StackText(PictureOfAWaitingChild());

  EXPECT_THAT(text, HasSubstr("taken because: a test"));
  EXPECT_THAT(text, ContainsRegex("#[0-9]+ +WaitInTheDataLoader +agent_evidence_test\n"));
  EXPECT_THAT(text, ContainsRegex("WaitInTheDataLoader.*\n +#[0-9]+ +TrainOneStep"));
  EXPECT_THAT(text, ContainsRegex(" main +agent_evidence_test"));
}

TEST(StackText, ReadsAsStoredAndReadBack) {
  contract::Picture picture = PictureOfAWaitingChild();

  EXPECT_EQ(StackText(*contract::DecodePicture(contract::EncodePicture(picture))), StackText(picture));
}

TEST(StackText, WhatCannotBeReadIsSaidAndDoesNotEndTheRest) {
  contract::Picture picture = PictureOfAWaitingChild();
  picture.threads.push_back({.tid = 999999, .name = "stuck", .state = "D", .kernel = "nfs_wait", .note = "it waits"});
  std::string text = StackText(picture);
  EXPECT_THAT(text, HasSubstr("thread 999999 stuck: in uninterruptible sleep in nfs_wait; no stack: it waits"));
  EXPECT_THAT(text, HasSubstr("TrainOneStep"));

  picture.maps = "no maps at all";
  EXPECT_THAT(StackText(picture), ContainsRegex("#0 +0x[0-9a-f]+"));
  EXPECT_THAT(StackText({.reason = "nothing there"}), HasSubstr("nothing there"));
}

}  // namespace
}  // namespace llmctl::agent
