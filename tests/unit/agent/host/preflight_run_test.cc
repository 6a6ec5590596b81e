// The process that tests a host, with shell scripts in the trainer's place.
#include "worker/agent/host/preflight_run.h"

#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <future>
#include <memory>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

#include "common/base/file.h"
#include "tests/unit/temporary_directory.h"

namespace llmctl::agent {
namespace {

using ::testing::HasSubstr;

constexpr std::chrono::seconds kDeadline(30);

class PreflightRunTest : public ::testing::Test {
 protected:
  // What the program does, as a shell script.
  void Program(const std::string& script) {
    path_ = directory_.path() + "/trainer";
    ASSERT_TRUE(WriteFileAtomically(path_, "#!/bin/sh\n" + script + "\n").ok());
    ASSERT_EQ(::chmod(path_.c_str(), 0700), 0);
    run_ = std::make_unique<PreflightRun>(
        PreflightRun::Options{.trainer_program = path_, .directory = "/somewhere", .devices = 2, .device_kind = "cpu",
                              .environment = {"PATH=/usr/bin:/bin"}, .patience = patience_},
        [this](PreflightFinished finished) { done_.set_value(std::move(finished)); });
  }
  PreflightFinished Wait() {
    std::future<PreflightFinished> done = done_.get_future();
    if (done.wait_for(kDeadline) != std::future_status::ready) return {.interrupted = false, .found = {.failure = "?"}};
    PreflightFinished finished = done.get();
    done_ = {};
    return finished;
  }

  TemporaryDirectory directory_;
  absl::Duration patience_ = absl::Minutes(10);
  std::string path_;
  std::promise<PreflightFinished> done_;
  std::unique_ptr<PreflightRun> run_;
};

TEST_F(PreflightRunTest, HandsOnWhatTheProgramFound) {
  Program("echo '{\"passed\": true, \"failure\": \"\", \"checks\": [{\"name\": \"args\", \"outcome\": \"passed\", "
          "\"seconds\": 0, \"value\": 0, \"unit\": \"\", \"detail\": \"'\"$*\"'\"}]}'");

  run_->Begin();
  PreflightFinished finished = Wait();

  EXPECT_FALSE(finished.interrupted);
  ASSERT_TRUE(finished.found.passed) << finished.found.failure;
  EXPECT_EQ(finished.found.checks.at(0).detail,
            "preflight --directory=/somewhere --devices=2 --device-kind=cpu");
}

TEST_F(PreflightRunTest, ProgramThatDiesOrSaysNothingIsAFailureThatSaysSo) {
  Program("kill -BUS $$");
  run_->Begin();
  EXPECT_THAT(Wait().found.failure, HasSubstr("killed by signal 7"));

  Program("exit 3");
  run_->Begin();
  EXPECT_THAT(Wait().found.failure, HasSubstr("ended with code 3"));
}

TEST_F(PreflightRunTest, ProgramThatIsMissingIsAFailure) {
  Program("");
  ASSERT_EQ(::unlink(path_.c_str()), 0);

  run_->Begin();

  EXPECT_THAT(Wait().found.failure, HasSubstr("start " + path_));
}

TEST_F(PreflightRunTest, CancelKillsItAndTheNextCanBegin) {
  Program("[ -e " + directory_.path() + "/second ] && echo '{\"passed\": true, \"failure\": \"\", \"checks\": []}' && "
          "exit 0; touch " + directory_.path() + "/second; exec sleep 1000");
  run_->Begin();

  run_->Cancel();
  EXPECT_TRUE(Wait().interrupted);

  ASSERT_TRUE(WriteFileAtomically(directory_.path() + "/second", "").ok());
  run_->Begin();
  EXPECT_TRUE(Wait().found.passed);
}

constexpr char kPasses[] = "echo '{\"passed\": true, \"failure\": \"\", \"checks\": []}'";

TEST_F(PreflightRunTest, WhoSaysNothingMoreButDoesNotEndIsKilled) {
  patience_ = absl::Milliseconds(200);
  Program("exec >&-; exec sleep 1000");

  run_->Begin();

  EXPECT_THAT(Wait().found.failure, HasSubstr("did not end within 200ms and was killed"));
}

TEST_F(PreflightRunTest, WhatItLeavesBehindDoesNotHoldUpItsResult) {
  Program(absl::StrCat("sleep 1000 & echo $! > ", directory_.path(), "/left; ", kPasses));

  run_->Begin();

  EXPECT_TRUE(Wait().found.passed);
  pid_t left = std::atoi(ReadFile(directory_.path() + "/left").value_or("").c_str());
  ASSERT_GT(left, 0);
  auto deadline = std::chrono::steady_clock::now() + kDeadline;
  auto lives = [&] {
    std::string status = ReadFile(absl::StrCat("/proc/", left, "/status")).value_or("");
    return !status.empty() && !absl::StrContains(status, "State:\tZ");
  };
  while (lives() && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  EXPECT_FALSE(lives());
}

// A group whose processes no kill reaches as long as it is frozen; only the first version of cgroups can do that.
class Freezer {
 public:
  Freezer() : path_(absl::StrCat("/sys/fs/cgroup/freezer/llmctl-test-", ::getpid())) {
    made_ = ::mkdir(path_.c_str(), 0700) == 0;
  }
  ~Freezer() {
    if (!made_) return;
    Write("freezer.state", "THAWED");
    auto deadline = std::chrono::steady_clock::now() + kDeadline;
    while (::rmdir(path_.c_str()) != 0 && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  }
  bool made() const { return made_; }
  const std::string& path() const { return path_; }
  void Write(const std::string& file, const std::string& word) const { std::ofstream(path_ + "/" + file) << word; }

 private:
  const std::string path_;
  bool made_ = false;
};

TEST_F(PreflightRunTest, OneThatNoKillReachesIsReportedAndDoesNotHoldUpTheNextOrTheEnd) {
  Freezer freezer;
  if (!freezer.made()) GTEST_SKIP() << "NOT RUN: this machine lets nobody make a freezer of cgroup v1";
  patience_ = absl::Milliseconds(200);
  std::string frozen = directory_.path() + "/frozen";
  Program(absl::StrCat("[ -e ", frozen, " ] && ", kPasses, " && exit 0\ntouch ", frozen, "\necho $$ > ", freezer.path(),
                       "/cgroup.procs\necho FROZEN > ", freezer.path(), "/freezer.state\nexec sleep 1000"));

  run_->Begin();
  EXPECT_THAT(Wait().found.failure, HasSubstr("cannot be killed"));

  run_->Begin();
  EXPECT_TRUE(Wait().found.passed);
  run_.reset();
}

TEST_F(PreflightRunTest, DoesNotOutliveItsOwner) {
  Program("exec sleep 1000");
  run_->Begin();
  auto began = std::chrono::steady_clock::now();

  run_.reset();

  EXPECT_LT(std::chrono::steady_clock::now() - began, kDeadline);
}

}  // namespace
}  // namespace llmctl::agent
