// Requests of trainers: answered exactly once, whatever restarts in between.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/agent/core/host.h"

namespace llmctl::agent {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

contract::StoreRequest Wait(int64_t id) {
  return {.request_id = id, .operation = contract::StoreOperation::kWait, .key = "k"};
}
contract::StoreRequest Set(int64_t id) {
  return {.request_id = id, .operation = contract::StoreOperation::kSet, .key = "mine", .value = "v"};
}
const contract::CheckpointCommit kCommit = {.request_id = 3, .step = 100, .path = "/c/100"};

TEST(Store, RequestsOfRanksAreToldApartAndAnswersFindTheirRank) {
  Host host = Host().Start().Connect().Run(1, {{0, 0}, {1, 1}});

  host.Say(1, 0, Wait(7));
  int64_t first = host.Sent<StoreCall>()[0].request.request_id;
  host.Say(1, 1, Wait(7));
  int64_t second = host.Sent<StoreCall>()[0].request.request_id;
  EXPECT_NE(first, second);
  host.Do(StoreAnswered{Generation(1), {.request_id = second, .found = true, .value = "x"}});

  ASSERT_THAT(host.Last<SendToShim>(), SizeIs(1));
  EXPECT_EQ(host.Last<SendToShim>()[0].rank, 1);
  EXPECT_EQ(host.ToShims<contract::StoreReply>()[0].request_id, 7);
  EXPECT_EQ(host.ToShims<contract::StoreReply>()[0].value, "x");
}

TEST(Store, AnAnswerIsPassedOnOnce) {
  Host host = Host().Start().Connect().Run(1).Say(1, 0, Wait(7));
  StoreAnswered answer = {Generation(1), {.request_id = WireRequestId(0, 7)}};

  host.Do(answer).Do(answer);

  EXPECT_THAT(host.last, IsEmpty());
}

TEST(Store, AfterAReconnectOwnKeysAndUnansweredRequestsAreSentAgain) {
  Host host = Host().Start().Connect().Run(1).Say(1, 0, Set(1));
  host.Do(StoreAnswered{Generation(1), {.request_id = WireRequestId(0, 1), .found = true}}).Say(1, 0, Wait(2));

  host.Disconnect().Connect();

  std::vector<StoreCall> calls = host.Sent<StoreCall>();
  ASSERT_THAT(calls, SizeIs(2));
  EXPECT_EQ(calls[0].request.key, "mine");
  EXPECT_EQ(calls[0].request.value, "v");
  EXPECT_EQ(calls[0].request.request_id, 0);
  EXPECT_EQ(calls[1].request.request_id, WireRequestId(0, 2));
}

TEST(Store, ADeletedOwnKeyIsNotSentAgain) {
  Host host = Host().Start().Connect().Run(1).Say(1, 0, Set(1));
  contract::StoreRequest removal = {
      .request_id = 2, .operation = contract::StoreOperation::kDelete, .key = "mine"};
  host.Say(1, 0, removal);
  host.Do(StoreAnswered{Generation(1), {.request_id = WireRequestId(0, 1)}});
  host.Do(StoreAnswered{Generation(1), {.request_id = WireRequestId(0, 2)}});

  host.Disconnect().Connect();

  EXPECT_THAT(host.Sent<StoreCall>(), IsEmpty());
}

TEST(Store, ARequestMadeWhileTheCoordinatorIsAwayIsSentAfterTheWelcome) {
  Host host = Host().Start().Connect().Run(1).Disconnect();

  host.Say(1, 0, Wait(2));
  EXPECT_THAT(host.last, IsEmpty());
  host.Connect();

  EXPECT_THAT(host.Sent<StoreCall>(), SizeIs(1));
}

TEST(Store, ARepetitionOfTheShimIsNotASecondRequest) {
  Host host = Host().Start().Connect().Run(1).Say(1, 0, Wait(2));

  host.Say(1, 0, Wait(2));

  EXPECT_THAT(host.last, IsEmpty());
}

TEST(Store, AnImpossibleRequestIdIsAnsweredWithAnError) {
  Host host = Host().Start().Connect().Run(1);

  host.Say(1, 0, Wait(int64_t{1} << 50));

  EXPECT_THAT(host.Sent<StoreCall>(), IsEmpty());
  ASSERT_THAT(host.ToShims<contract::StoreReply>(), SizeIs(1));
  EXPECT_NE(host.ToShims<contract::StoreReply>()[0].error, "");
}

TEST(Store, RequestsOfARankThatHasExitedAreForgotten) {
  Host host = Host().Start().Connect().Run(1, {{0, 0}, {1, 1}}).Say(1, 0, Wait(2)).Exit(1, 0);

  host.Disconnect().Connect();

  EXPECT_THAT(host.Sent<StoreCall>(), IsEmpty());
}

TEST(Outbox, ACommitIsPersistedBeforeItIsSent) {
  Host host = Host().Start().Connect().Run(1);

  host.Say(1, 0, kCommit);

  ASSERT_THAT(host.last, SizeIs(2));
  EXPECT_TRUE(std::holds_alternative<PersistOutbox>(host.last[0]));
  EXPECT_EQ(host.Sent<CommitOffer>()[0].commit.path, "/c/100");
}

TEST(Outbox, ACommitMadeWhileTheCoordinatorIsAwaySurvivesTheAgentToo) {
  Host host = Host().Start().Connect().Run(1).Disconnect().Say(1, 0, kCommit).Exit(1, 0);

  host.Crash().Start().Connect();

  ASSERT_THAT(host.Sent<CommitOffer>(), SizeIs(1));
  EXPECT_EQ(host.Sent<CommitOffer>()[0].generation, Generation(1));
  EXPECT_EQ(host.Sent<CommitOffer>()[0].commit.step, 100);
}

TEST(Outbox, TheAnswerEmptiesItAndReachesTheTrainerThatAskedBeforeTheAgentRestarted) {
  Host host = Host().Start().Connect().Run(1).Say(1, 0, kCommit).Crash();
  host.Do(ShimFound{Generation(1), 0, 0, absl::Minutes(10)}).Start().Do(ShimConnected{Generation(1), 0});
  // The shim repeats what nobody answered.
  host.Say(1, 0, kCommit).Say(1, 0, contract::CaughtUp{}).Connect();
  EXPECT_THAT(host.Sent<CommitOffer>(), SizeIs(1));

  host.Do(CommitAnswered{
      Generation(1), {.request_id = WireRequestId(0, 3), .committed = true, .removable_paths = {"/c/50"}}});

  EXPECT_THAT(host.Last<PersistOutbox>(), SizeIs(1));
  ASSERT_THAT(host.ToShims<contract::CheckpointCommitReply>(), SizeIs(1));
  EXPECT_EQ(host.ToShims<contract::CheckpointCommitReply>()[0].request_id, 3);
  EXPECT_THAT(host.ToShims<contract::CheckpointCommitReply>()[0].removable_paths, testing::ElementsAre("/c/50"));
  EXPECT_THAT(host.state.outbox, IsEmpty());
}

TEST(Progress, IsPassedOnWhileThereIsALinkAndDroppedOtherwise) {
  Host host = Host().Start().Connect().Run(1);

  host.Say(1, 0, contract::Progress{.step = 5});
  ASSERT_THAT(host.Sent<ProgressReport>(), SizeIs(1));
  EXPECT_EQ(host.Sent<ProgressReport>()[0].progress.step, 5);
  host.Disconnect().Say(1, 0, contract::Progress{.step = 6});

  EXPECT_THAT(host.last, IsEmpty());
}

TEST(Progress, MessagesOfUnknownRanksAreIgnored) {
  Host host = Host().Start().Connect();

  host.Say(1, 0, contract::Ready{}).Say(1, 0, kCommit);

  EXPECT_THAT(host.last, IsEmpty());
}

}  // namespace
}  // namespace llmctl::agent
