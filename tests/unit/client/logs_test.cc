// `llmctl logs`: what is printed is what the rank wrote, each byte once, and what is missing is said.
#include "client/command/verbs.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <sstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/client/fake_cluster.h"

namespace llmctl::client {
namespace {

using testing::HasSubstr;
using testing::Not;

class FollowedLogs : public testing::Test {
 protected:
  struct RankLog {
    std::string text;
    int64_t kept_from = 0;
    bool ended = true;
  };

  void SetUp() override {
    cluster_.job = MakeJob("j-1", v1::JOB_PHASE_SUCCEEDED);
    cluster_.read_log = [this](const v1::ReadLogRequest& request) { return Read(request); };
  }

  // In pieces of at most four bytes.
  absl::StatusOr<v1::ReadLogReply> Read(const v1::ReadLogRequest& request) {
    if (!failures_.empty()) {
      absl::Status failure = failures_.front();
      failures_.pop_front();
      return failure;
    }
    auto it = logs_.find(request.attempt() == 0 ? cluster_.job.attempt() : request.attempt());
    if (it == logs_.end()) return absl::NotFoundError("it started no process");
    const RankLog& log = it->second;
    int64_t begin = std::max(request.offset(), log.kept_from);
    v1::ReadLogReply reply;
    reply.set_data(log.text.substr(static_cast<size_t>(begin), 4));
    reply.set_next_offset(begin + static_cast<int64_t>(reply.data().size()));
    bool at_end = reply.next_offset() == static_cast<int64_t>(log.text.size());
    reply.set_end(at_end && log.ended);
    if (at_end && when_read_) when_read_();
    return reply;
  }

  absl::StatusOr<ExitCode> Follow() { return Logs({.job = "quickstart", .follow = true}, session_); }

  FakeCluster cluster_;
  std::map<int64_t, RankLog> logs_;  // by attempt
  std::deque<absl::Status> failures_;
  std::function<void()> when_read_;
  std::ostringstream out_, err_;
  Session session_{.cluster = cluster_, .out = out_, .err = err_};
};

TEST_F(FollowedLogs, WhatIsNotKeptAnyMoreIsAnnounced) {
  logs_[1] = {.text = "0123456789", .kept_from = 6};

  EXPECT_EQ(*Logs({.job = "j-1"}, session_), ExitCode::kOk);

  EXPECT_EQ(out_.str(), "6789");
  EXPECT_THAT(err_.str(), HasSubstr("6 bytes from byte 0 on are missing"));
}

TEST_F(FollowedLogs, ALogThatOvertakesItsReaderIsAnnounced) {
  logs_[1] = {.text = "01234567", .ended = false};
  when_read_ = [this] { logs_[1] = {.text = "0123456789abcdefghij", .kept_from = 18}; };

  EXPECT_EQ(*Follow(), ExitCode::kOk);

  EXPECT_EQ(out_.str(), "01234567ij");
  EXPECT_THAT(err_.str(), HasSubstr("10 bytes from byte 8 on are missing"));
}

TEST_F(FollowedLogs, LastWordsOfAnAttemptAreReadBeforeTheNextOne) {
  cluster_.job.set_phase(v1::JOB_PHASE_RUNNING);
  logs_[1] = {.text = "first", .ended = false};
  when_read_ = [this] {
    when_read_ = nullptr;
    // It failed with some last words, and so did another one, while we looked away.
    logs_[1] = {.text = "first, last words\n"};
    logs_[3] = {.text = "third\n"};
    cluster_.job.set_attempt(3);
    cluster_.job.set_phase(v1::JOB_PHASE_SUCCEEDED);
  };

  EXPECT_EQ(*Follow(), ExitCode::kOk);

  EXPECT_EQ(out_.str(), "first, last words\nthird\n");
  EXPECT_EQ(err_.str(), "--- attempt 2 ---\n--- attempt 2: it started no process ---\n--- attempt 3 ---\n");
}

TEST_F(FollowedLogs, AHostThatIsAwayForAMomentCostsNoByte) {
  logs_[1] = {.text = "0123", .ended = false};
  when_read_ = [this] {
    when_read_ = nullptr;
    failures_ = {absl::UnavailableError("host a is not connected"), absl::DeadlineExceededError("no answer")};
    logs_[1] = {.text = "01234567"};
  };

  EXPECT_EQ(*Follow(), ExitCode::kOk);

  EXPECT_EQ(out_.str(), "01234567");
  EXPECT_THAT(err_.str(), Not(HasSubstr("missing")));
}

TEST_F(FollowedLogs, ACoordinatorThatWasNeverThereIsNotWaitedFor) {
  cluster_.error = absl::UnavailableError("refused");

  EXPECT_EQ(Follow().status().code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace llmctl::client
