// The process that tests a host, with shell scripts in the trainer's place.
#include "worker/agent/host/preflight_run.h"

#include <sys/stat.h>

#include <chrono>
#include <future>
#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
                              .environment = {"PATH=/usr/bin:/bin"}},
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

TEST_F(PreflightRunTest, DoesNotOutliveItsOwner) {
  Program("exec sleep 1000");
  run_->Begin();
  auto began = std::chrono::steady_clock::now();

  run_.reset();

  EXPECT_LT(std::chrono::steady_clock::now() - began, kDeadline);
}

}  // namespace
}  // namespace llmctl::agent
