#include "coordinator/runtime/log_broker.h"

#include <memory>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "coordinator/runtime/reply_book.h"
#include "tests/unit/runtime/silent_link.h"

namespace llmctl::runtime {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

class LogLink final : public SilentLink {
 public:
  void ReadLog(const LogQuery& query) override { asked.push_back(query); }

  std::vector<LogQuery> asked;
};

Instant At(double seconds) { return {absl::Seconds(seconds), absl::UnixEpoch() + absl::Seconds(seconds)}; }

class LogBrokerTest : public testing::Test {
 protected:
  LogBrokerTest() {
    links_.Add(1, link_);
    links_.Admit(host_, 1);
  }
  void Ask(const NodeId& node, Instant now) {
    broker_.Ask(node, {}, now, [this](const absl::StatusOr<LogPiece>& piece) {
      answers_.push_back(piece.status().code());
    });
  }

  const NodeId host_{"host-a"};
  const std::shared_ptr<LogLink> link_ = std::make_shared<LogLink>();
  HostLinks links_;
  LogBroker broker_{links_, absl::Seconds(10)};
  std::vector<absl::StatusCode> answers_;
};

TEST_F(LogBrokerTest, SilentHostIsWaitedForNoLongerThanPatienceLasts) {
  Ask(host_, At(0));
  Ask(host_, At(1));
  broker_.Deliver(host_, link_->asked.at(0).request_id, LogPiece{});
  broker_.Expire(At(10.9));
  EXPECT_THAT(answers_, ElementsAre(absl::StatusCode::kOk));

  broker_.Expire(At(11));
  EXPECT_FALSE(broker_.Deliver(host_, link_->asked.at(1).request_id, LogPiece{}));

  EXPECT_THAT(answers_, ElementsAre(absl::StatusCode::kOk, absl::StatusCode::kDeadlineExceeded));
}

TEST_F(LogBrokerTest, DoesNotTakeAStallOfTheCoordinatorForSilence) {
  Ask(host_, At(0));
  broker_.Extend(absl::Seconds(30));

  broker_.Expire(At(39.9));
  EXPECT_THAT(answers_, IsEmpty());
  broker_.Expire(At(40));
  EXPECT_THAT(answers_, ElementsAre(absl::StatusCode::kDeadlineExceeded));
}

TEST_F(LogBrokerTest, OnceClosedItAnswersWhoWaitsAndWhoComes) {
  Ask(host_, At(0));

  broker_.Close(absl::UnavailableError("stopping"));
  Ask(host_, At(1));
  broker_.Expire(At(100));

  EXPECT_THAT(answers_, ElementsAre(absl::StatusCode::kUnavailable, absl::StatusCode::kUnavailable));
  EXPECT_THAT(link_->asked, SizeIs(1)) << "nobody would take the answer";
}

TEST(ReplyBook, OnceClosedItAnswersWhoWaitsAndWhoComes) {
  ReplyBook book;
  std::vector<absl::StatusCode> answers;
  auto done = [&](const Reply& reply) { answers.push_back(reply.status.code()); };
  core::RequestId waits = book.Enter(done);

  book.Close(absl::UnavailableError("stopping"));
  core::RequestId late = book.Enter(done);
  book.Answer(waits, {});
  book.Answer(late, {});

  EXPECT_THAT(answers, ElementsAre(absl::StatusCode::kUnavailable, absl::StatusCode::kUnavailable));
}

}  // namespace
}  // namespace llmctl::runtime
