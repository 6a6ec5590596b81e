// The runtime around the real core: what leaves when, and what happens when the store does not play along.
#include "coordinator/runtime/runtime.h"

#include <chrono>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <future>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "coordinator/store/sqlite/sqlite_store.h"
#include "tests/unit/runtime/gated_store.h"
#include "tests/unit/runtime/silent_link.h"

namespace llmctl::runtime {
namespace {

using ::testing::HasSubstr;

constexpr std::chrono::seconds kDeadline{20};

core::JobSubmitted Submission(const std::string& key = "") {
  core::JobSubmitted submitted;
  submitted.name = "train";
  submitted.project = "default";
  submitted.idempotency_key = key;
  return submitted;
}

std::unique_ptr<Runtime> StartOrDie(store::Store& store, Runtime::Options options = {}) {
  absl::StatusOr<std::unique_ptr<Runtime>> runtime = Runtime::Start(std::move(options), store);
  EXPECT_TRUE(runtime.ok()) << runtime.status();
  return *std::move(runtime);
}

std::future<Reply> Ask(Runtime& runtime, UserRequest request) {
  auto promise = std::make_shared<std::promise<Reply>>();
  runtime.Ask(std::move(request), [promise](const Reply& reply) { promise->set_value(reply); });
  return promise->get_future();
}

Reply Await(std::future<Reply> reply) {
  if (reply.wait_for(kDeadline) == std::future_status::ready) return reply.get();
  return {.status = absl::DeadlineExceededError("no reply")};
}

bool Answered(const std::future<Reply>& reply) {
  return reply.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
}

class RecordingLink : public SilentLink {
 public:
  void Welcome() override { welcome.set_value(); }
  void Inspect(const InspectionQuery& query) override { inspections.push_back(query); }
  void Close(const std::string& reason) override { closed.set_value(reason); }

  std::promise<void> welcome;
  std::promise<std::string> closed;
  std::vector<InspectionQuery> inspections;
};

core::WorkerConnected Hello(Runtime& runtime) {
  core::WorkerConnected hello;
  hello.node.id = NodeId("host-a");
  hello.node.incarnation = 1;
  hello.link = runtime.NextLink();
  return hello;
}

TEST(Runtime, SubmissionIsAnsweredAndShownOnlyWhenItIsDurable) {
  store::GatedStore store;
  std::unique_ptr<Runtime> runtime = StartOrDie(store);
  store.CloseGate();

  std::future<Reply> reply = Ask(*runtime, Submission());
  store.AwaitCommits(1);

  EXPECT_FALSE(Answered(reply));
  EXPECT_EQ(runtime->snapshot()->FindNewestNamed("train"), nullptr);
  store.OpenGate();
  Reply answer = Await(std::move(reply));
  ASSERT_TRUE(answer.status.ok()) << answer.status;
  EXPECT_EQ(runtime->snapshot()->FindNewestNamed("train")->job->id, answer.job.job->id);
  EXPECT_GE(runtime->snapshot()->revision(), answer.revision);
}

TEST(Runtime, NothingGoesToAHostBeforeItsCommit) {
  store::GatedStore store;
  std::unique_ptr<Runtime> runtime = StartOrDie(store);
  store.CloseGate();
  auto link = std::make_shared<RecordingLink>();
  std::future<void> welcome = link->welcome.get_future();

  runtime->Connect(Hello(*runtime), link);
  store.AwaitCommits(1);

  EXPECT_EQ(welcome.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
  store.OpenGate();
  EXPECT_EQ(welcome.wait_for(kDeadline), std::future_status::ready);
}

TEST(Runtime, HeartbeatConfirmsWhatCameBeforeItOnlyWhenThatIsDurable) {
  store::GatedStore store;
  std::unique_ptr<Runtime> runtime = StartOrDie(store, {.lease = absl::Milliseconds(400)});
  store.CloseGate();
  std::promise<void> first, second;
  std::future<void> first_durable = first.get_future(), second_durable = second.get_future();

  runtime->Heartbeat(1, NodeId("host-a"), 1, {}, [&] { first.set_value(); });
  runtime->Connect(Hello(*runtime), std::make_shared<RecordingLink>());
  runtime->Heartbeat(1, NodeId("host-a"), 1, {}, [&] { second.set_value(); });
  store.AwaitCommits(1);

  EXPECT_EQ(first_durable.wait_for(kDeadline), std::future_status::ready);
  EXPECT_EQ(second_durable.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
  store.OpenGate();
  EXPECT_EQ(second_durable.wait_for(kDeadline), std::future_status::ready);
  runtime->Stop();
}

TEST(Runtime, StepsGoOnWhileABatchIsBeingCommitted) {
  store::GatedStore store;
  std::unique_ptr<Runtime> runtime = StartOrDie(store);
  store.CloseGate();
  std::vector<std::future<Reply>> replies;
  replies.push_back(Ask(*runtime, Submission()));
  store.AwaitCommits(1);

  for (int i = 0; i < 99; ++i) replies.push_back(Ask(*runtime, Submission()));
  store.OpenGate();

  for (std::future<Reply>& reply : replies) EXPECT_TRUE(Await(std::move(reply)).status.ok());
  // One commit served many: of the first job, and one or a few for the other 99 and the plans.
  EXPECT_NE(runtime->snapshot()->FindJob(JobId("j-100")), nullptr);
}

TEST(Runtime, FullDiskRefusesChangesAndLosesNothing) {
  store::GatedStore store;
  std::unique_ptr<Runtime> runtime = StartOrDie(store);
  std::deque<absl::Status> failures(3, absl::ResourceExhaustedError("database or disk is full"));
  store.Fail(failures);

  std::future<Reply> first = Ask(*runtime, Submission());
  // The third attempt cannot begin before the first has failed and been handled.
  store.AwaitCommits(3);
  store.CloseGate();
  absl::Status health = runtime->Health();
  std::string metrics = runtime->RenderMetrics();
  Reply second = Await(Ask(*runtime, Submission()));
  store.OpenGate();

  EXPECT_EQ(health.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(metrics, HasSubstr("llm_store_refusing 1\n"));
  EXPECT_EQ(second.status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(second.status.message()), HasSubstr("disk is full"));
  EXPECT_TRUE(Await(std::move(first)).status.ok());
  EXPECT_TRUE(runtime->Health().ok());
  EXPECT_THAT(runtime->RenderMetrics(), HasSubstr("llm_store_refusing 0\n"));
  EXPECT_TRUE(Await(Ask(*runtime, Submission())).status.ok());
}

// While the disk takes its time with a commit that had failed before, there is nothing to do but wait.
TEST(Runtime, WaitingForARetryCostsNoProcessorTime) {
  store::GatedStore store;
  std::unique_ptr<Runtime> runtime = StartOrDie(store);
  store.Fail({absl::ResourceExhaustedError("database or disk is full")});
  std::future<Reply> reply = Ask(*runtime, Submission());
  store.AwaitCommits(1);
  store.CloseGate();
  store.AwaitCommits(2);

  std::clock_t begin = std::clock();
  EXPECT_EQ(reply.wait_for(std::chrono::seconds(1)), std::future_status::timeout);
  double spent = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;

  // Little, as a busy machine leaves little to a thread that spins.
  EXPECT_LT(spent, 0.01) << "seconds of processor time in one second";
  store.OpenGate();
  EXPECT_TRUE(Await(std::move(reply)).status.ok());
}

TEST(Runtime, UserIsToldAfterAWhileThatTheDiskDoesNotTakeWhatHeAskedFor) {
  store::GatedStore store;
  std::unique_ptr<Runtime> runtime = StartOrDie(store);
  // After 0.1, 0.3, 0.7 and 1.5 s.
  store.Fail(std::deque<absl::Status>(5, absl::ResourceExhaustedError("database or disk is full")));

  Reply in_doubt = Await(Ask(*runtime, Submission("key")));
  store.AwaitCommits(6);

  EXPECT_EQ(in_doubt.status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(in_doubt.status.message()), HasSubstr("repeat it with the same idempotency key"));
  Reply again{.status = absl::UnknownError("never asked")};
  auto deadline = std::chrono::steady_clock::now() + kDeadline;
  while (!again.status.ok() && std::chrono::steady_clock::now() < deadline) {
    again = Await(Ask(*runtime, Submission("key")));
  }
  ASSERT_TRUE(again.status.ok()) << again.status;
  EXPECT_TRUE(again.already_existed);
}

TEST(Runtime, WhatComesWhileItStopsIsRefusedEvenIfTheDiskRecovers) {
  store::GatedStore store;
  std::unique_ptr<Runtime> runtime = StartOrDie(store);
  store.Fail({absl::ResourceExhaustedError("database or disk is full")});
  std::future<Reply> first = Ask(*runtime, Submission());
  store.AwaitCommits(1);
  store.CloseGate();
  store.AwaitCommits(2);

  std::future<void> stopped = std::async(std::launch::async, [&] { runtime->Stop(); });
  auto deadline = std::chrono::steady_clock::now() + kDeadline;
  while (runtime->Health().code() != absl::StatusCode::kUnavailable && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::yield();
  }
  store.OpenGate();
  ASSERT_EQ(stopped.wait_for(kDeadline), std::future_status::ready);

  EXPECT_TRUE(Await(std::move(first)).status.ok()) << "what was accepted is finished";
  EXPECT_EQ(runtime->Health().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(Await(Ask(*runtime, Submission())).status.code(), absl::StatusCode::kUnavailable);
}

TEST(Runtime, LostTermEndsTheProcessWithoutAnAnswer) {
  store::GatedStore store;
  std::promise<absl::Status> fatal;
  std::unique_ptr<Runtime> runtime =
      StartOrDie(store, {.on_fatal = [&](const absl::Status& status) { fatal.set_value(status); }});
  store.Fail({absl::FailedPreconditionError("another coordinator took over")});

  std::future<Reply> reply = Ask(*runtime, Submission());

  std::future<absl::Status> reason = fatal.get_future();
  ASSERT_EQ(reason.wait_for(kDeadline), std::future_status::ready);
  EXPECT_EQ(reason.get().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_FALSE(Answered(reply));
}

TEST(Runtime, SilentHostLosesItsLinkAndIsLost) {
  store::GatedStore store;
  std::unique_ptr<Runtime> runtime = StartOrDie(store, {.lease = absl::Milliseconds(500)});
  auto link = std::make_shared<RecordingLink>();
  std::future<std::string> closed = link->closed.get_future();

  runtime->Connect(Hello(*runtime), link);

  ASSERT_EQ(closed.wait_for(kDeadline), std::future_status::ready);
  EXPECT_THAT(closed.get(), HasSubstr("no heartbeat"));
}

TEST(Runtime, MetricsSayWhatAHostIsLetDo) {
  store::GatedStore store;
  std::unique_ptr<Runtime> runtime = StartOrDie(store);
  auto link = std::make_shared<RecordingLink>();
  std::future<void> welcome = link->welcome.get_future();
  runtime->Connect(Hello(*runtime), link);
  ASSERT_EQ(welcome.wait_for(kDeadline), std::future_status::ready);
  std::string before = runtime->RenderMetrics();

  ASSERT_TRUE(Await(Ask(*runtime, core::NodeCordoned{.node = NodeId("host-a")})).status.ok());

  EXPECT_THAT(before, HasSubstr("llm_node_service{node=\"host-a\",state=\"open\"} 1\n"));
  std::string after = runtime->RenderMetrics();
  EXPECT_THAT(after, HasSubstr("llm_node_service{node=\"host-a\",state=\"open\"} 0\n"));
  EXPECT_THAT(after, HasSubstr("llm_node_service{node=\"host-a\",state=\"cordoned\"} 1\n"));
  EXPECT_THAT(after, HasSubstr("llm_node_trust{node=\"host-a\",state=\"trusted\"} 1\n"));
}

// Holds the core's thread as a SIGSTOP of the process would: until a moment.
class StallingLink final : public RecordingLink {
 public:
  explicit StallingLink(std::chrono::steady_clock::time_point until) : until_(until) {}
  void Welcome() override {
    RecordingLink::Welcome();
    never_.get_future().wait_until(until_);
  }

 private:
  const std::chrono::steady_clock::time_point until_;
  std::promise<void> never_;
};

TEST(Runtime, WhileTheCoordinatorStandsStillNobodysTimeRunsOut) {
  store::GatedStore store;
  Node known;
  known.id = NodeId("host-b");
  store.Preload({.counters = {}, .jobs = {}, .nodes = {known}});
  constexpr std::chrono::milliseconds kGrace{1500};
  auto grace_over = std::chrono::steady_clock::now() + kGrace;
  std::unique_ptr<Runtime> runtime =
      StartOrDie(store, {.lease = absl::Milliseconds(400), .start_grace = absl::FromChrono(kGrace)});
  auto link = std::make_shared<StallingLink>(grace_over + std::chrono::milliseconds(300));
  std::future<void> stalled = link->welcome.get_future();

  runtime->Connect(Hello(*runtime), link);
  ASSERT_EQ(stalled.wait_for(kDeadline), std::future_status::ready);
  ASSERT_TRUE(Await(Ask(*runtime, Submission())).status.ok());

  ASSERT_GE(std::chrono::steady_clock::now(), grace_over) << "it has not stood still";
  EXPECT_EQ(runtime->snapshot()->nodes().at(known.id)->state, NodeState::kReady)
      << "it may have said hello, and nobody has listened";
}

TEST(Runtime, RestartKnowsWhatWasAccepted) {
  char path[] = "/tmp/llm-runtime-XXXXXX";
  std::string directory = mkdtemp(path);
  JobId id;
  {
    std::unique_ptr<store::Store> store = *store::OpenSqliteStore({.path = directory + "/coordinator.db"});
    std::unique_ptr<Runtime> runtime = StartOrDie(*store);
    Reply reply = Await(Ask(*runtime, Submission("key")));
    ASSERT_TRUE(reply.status.ok()) << reply.status;
    id = reply.job.job->id;
    runtime->Stop();
    EXPECT_EQ(Await(Ask(*runtime, Submission())).status.code(), absl::StatusCode::kUnavailable);
  }

  std::unique_ptr<store::Store> store = *store::OpenSqliteStore({.path = directory + "/coordinator.db"});
  std::unique_ptr<Runtime> runtime = StartOrDie(*store);
  Reply again = Await(Ask(*runtime, Submission("key")));

  EXPECT_EQ(runtime->term(), 2);
  ASSERT_TRUE(again.status.ok()) << again.status;
  EXPECT_TRUE(again.already_existed);
  EXPECT_EQ(again.job.job->id, id);
  std::promise<absl::StatusOr<std::vector<JobEventRecord>>> events;
  runtime->events().Ask({.job = id, .after = 0, .limit = 10}, [&](auto found) { events.set_value(std::move(found)); });
  absl::StatusOr<std::vector<JobEventRecord>> found = events.get_future().get();
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_FALSE(found->empty());
  runtime.reset();
  store.reset();
  std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace llmctl::runtime
