// The API from outside: a real server, core and SQLite store in this process, and agents that only speak.
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <map>
#include <set>
#include <thread>

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include "common/base/instant.h"
#include "coordinator/rpc/link_mapping.h"
#include "coordinator/rpc/server.h"
#include "coordinator/runtime/runtime.h"
#include "coordinator/store/sqlite/backup.h"
#include "coordinator/store/sqlite/sqlite_store.h"
#include "llmctl/v1/admin.grpc.pb.h"
#include "llmctl/v1/jobs.grpc.pb.h"
#include "llmctl/v1/nodes.grpc.pb.h"
#include "tests/unit/rpc/fake_agent.h"
#include "tests/unit/runtime/gated_store.h"

namespace llmctl::rpc {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

v1::JobSpec Spec(const std::string& name = "train") {
  v1::JobSpec spec;
  spec.set_api_version("llmctl/v1");
  spec.set_kind("TrainingJob");
  spec.mutable_metadata()->set_name(name);
  v1::Model* model = spec.mutable_model();
  model->set_architecture("llama");
  model->set_layers(2);
  model->set_hidden_size(64);
  model->set_heads(4);
  spec.mutable_data()->set_dataset("/data");
  spec.mutable_data()->set_sequence_length(64);
  spec.mutable_training()->set_steps(100);
  spec.mutable_training()->set_global_batch_size(8);
  spec.mutable_training()->set_micro_batch_size(4);
  spec.mutable_checkpoint()->set_directory("/checkpoints");
  return spec;
}

class RpcTest : public ::testing::Test {
 protected:
  RpcTest() {
    char path[] = "/tmp/llm-rpc-XXXXXX";
    directory_ = mkdtemp(path);
    store_ = *store::OpenSqliteStore({.path = directory_ + "/coordinator.db"});
    runtime_ = *runtime::Runtime::Start({.build_id = "0.1.0+coordinator"}, *store_);
    server_ = *Server::Start({.listen = "127.0.0.1:0", .scratch_directory = directory_}, *runtime_);
    auto channel = grpc::CreateChannel(server_->address(), grpc::InsecureChannelCredentials());
    jobs_ = v1::Jobs::NewStub(channel);
    nodes_ = v1::Nodes::NewStub(channel);
  }
  ~RpcTest() override {
    runtime_->Stop();
    server_->Stop();
    server_.reset();
    runtime_.reset();
    store_.reset();
    std::filesystem::remove_all(directory_);
  }

  // A unary call with a deadline.
  template <typename Stub, typename Request, typename Reply>
  grpc::Status Call(Stub& stub, grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Reply*),
                    const Request& request, Reply* reply) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
    return (stub.*method)(&context, request, reply);
  }

  v1::SubmitReply SubmitOrDie(const v1::JobSpec& spec, const std::string& key = "") {
    v1::SubmitRequest request;
    *request.mutable_spec() = spec;
    request.set_idempotency_key(key);
    v1::SubmitReply reply;
    grpc::Status status = Call(*jobs_, &v1::Jobs::Stub::Submit, request, &reply);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return reply;
  }

  v1::Job Get(const std::string& id) {
    v1::GetJobRequest request;
    request.set_id(id);
    v1::Job job;
    grpc::Status status = Call(*jobs_, &v1::Jobs::Stub::Get, request, &job);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return job;
  }

  // Reads a watch until the job is in `phase`, or its end.
  v1::Job WatchUntil(const std::string& id, v1::JobPhase phase) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
    v1::WatchJobRequest request;
    request.set_id(id);
    auto reader = jobs_->Watch(&context, request);
    v1::Job job;
    while (reader->Read(&job) && job.phase() != phase) {
    }
    EXPECT_EQ(job.phase(), phase) << job.reason();
    context.TryCancel();
    return job;
  }

  std::string directory_;
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<runtime::Runtime> runtime_;
  std::unique_ptr<Server> server_;
  std::unique_ptr<v1::Jobs::Stub> jobs_;
  std::unique_ptr<v1::Nodes::Stub> nodes_;
};

// One job through its whole life: two ranks on one host, a rendezvous, progress, a checkpoint, the end.
TEST_F(RpcTest, JobRunsFromSubmissionToSuccess) {
  FakeAgent agent(server_->address(), "host-a", 2);
  ASSERT_TRUE(agent.Await(v1::CoordinatorMessage::kWelcome).has_welcome());
  v1::JobSpec spec = Spec();
  spec.mutable_resources()->set_devices_per_worker(2);

  std::string id = SubmitOrDie(spec).job().id();
  v1::StartRanks start = agent.Await(v1::CoordinatorMessage::kStart).start();
  ASSERT_EQ(start.ranks_size(), 2);
  EXPECT_EQ(start.rank_table(1).fabric_address(), "127.0.0.1");
  EXPECT_EQ(start.spec().training().precision(), "bf16");
  const v1::Generation generation = start.generation();
  for (int rank : {0, 1}) agent.SendRank(generation, rank, v1::RANK_PHASE_STARTING);

  v1::AgentMessage message;
  v1::StoreRequest* store = message.mutable_store();
  *store->mutable_generation() = generation;
  store->set_request_id(1);
  store->mutable_wait()->set_key("address");
  agent.Send(message);
  store->set_request_id(2);
  store->mutable_set()->set_key("address");
  store->mutable_set()->set_value("127.0.0.1:1");
  agent.Send(message);
  std::set<int64_t> answered = {agent.Await(v1::CoordinatorMessage::kStore).store().request_id(),
                                agent.Await(v1::CoordinatorMessage::kStore).store().request_id()};
  EXPECT_EQ(answered, (std::set<int64_t>{1, 2}));

  for (int rank : {0, 1}) agent.SendRank(generation, rank, v1::RANK_PHASE_RUNNING);
  v1::Job running = WatchUntil(id, v1::JOB_PHASE_RUNNING);
  EXPECT_EQ(running.ranks_size(), 2);
  EXPECT_EQ(running.ranks(1).pid(), 1001);

  message.Clear();
  *message.mutable_progress()->mutable_generation() = generation;
  message.mutable_progress()->set_step(50);
  message.mutable_progress()->set_steps(100);
  message.mutable_progress()->set_loss(2.5);
  message.mutable_progress()->set_step_seconds(0.5);
  agent.Send(message);
  message.Clear();
  v1::CheckpointCommitRequest* commit = message.mutable_checkpoint_commit();
  *commit->mutable_generation() = generation;
  commit->set_request_id(7);
  commit->set_step(50);
  commit->set_path("/checkpoints/step-00000050-a1-g1");
  commit->set_manifest_digest("d");
  commit->set_next_sample(400);
  agent.Send(message);
  v1::CheckpointCommitReply committed = agent.Await(v1::CoordinatorMessage::kCheckpointCommit).checkpoint_commit();
  EXPECT_TRUE(committed.committed()) << committed.error();
  EXPECT_EQ(committed.request_id(), 7);
  // The reply came after the progress on the same stream.
  v1::Job job = Get(id);
  EXPECT_EQ(job.progress().step(), 50);
  EXPECT_DOUBLE_EQ(job.progress().eta_seconds(), 25);
  EXPECT_EQ(job.checkpoint().step(), 50);
  EXPECT_THAT(runtime_->RenderMetrics(), HasSubstr("llm_job_step{job=\"" + id + "\"} 50"));

  for (int rank : {0, 1}) agent.SendRank(generation, rank, v1::RANK_PHASE_EXITED);
  agent.SendReleased(generation);
  v1::Job done = WatchUntil(id, v1::JOB_PHASE_SUCCEEDED);
  EXPECT_EQ(done.ranks(0).exit_code(), 0);
  EXPECT_TRUE(done.has_end_time());
}

// What its ranks did is of no use any more; how far it has come is.
TEST_F(RpcTest, RanksOfAJobThatHasEndedAreForgotten) {
  FakeAgent agent(server_->address(), "host-a", 1);
  std::string id = SubmitOrDie(Spec()).job().id();
  const v1::Generation generation = agent.Await(v1::CoordinatorMessage::kStart).start().generation();
  agent.SendRank(generation, 0, v1::RANK_PHASE_RUNNING);
  WatchUntil(id, v1::JOB_PHASE_RUNNING);
  v1::AgentMessage message;
  *message.mutable_progress()->mutable_generation() = generation;
  message.mutable_progress()->set_step(50);
  agent.Send(message);
  v1::RankPulse* pulse = message.mutable_heartbeat()->add_pulses();
  *pulse->mutable_generation() = generation;
  pulse->set_activity("training");
  agent.Send(message);
  const GenerationId live{JobId(id), generation.attempt(), generation.generation()};
  // As of one moment: what is merely old is not shown either.
  auto shows = [&, now = Now()](size_t ranks) {
    auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (runtime_->ranks().Live(live, now).size() != ranks) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      std::this_thread::yield();
    }
    return true;
  };
  ASSERT_TRUE(shows(1));

  agent.SendRank(generation, 0, v1::RANK_PHASE_EXITED);
  agent.SendReleased(generation);
  WatchUntil(id, v1::JOB_PHASE_SUCCEEDED);

  EXPECT_TRUE(shows(0));
  EXPECT_EQ(Get(id).progress().step(), 50);
}

TEST_F(RpcTest, ProgressOfAJobThatIsNotKnownIsNotKept) {
  runtime_->ReportProgress({JobId("j-99"), 1, 1}, {.step = 5, .step_seconds = 1});
  std::string id = SubmitOrDie(Spec()).job().id();
  runtime_->ReportProgress({JobId(id), 1, 1}, {.step = 5, .step_seconds = 1});

  EXPECT_FALSE(runtime_->progress().Newest(JobId("j-99")).has_value());
  EXPECT_FALSE(runtime_->progress().Newest(JobId(id)).has_value()) << "it has no such generation";
}

TEST_F(RpcTest, HeartbeatsAreAnsweredAtOnceAndConfirmWhatIsDurable) {
  FakeAgent agent(server_->address(), "host-a", 1);
  ASSERT_TRUE(agent.Await(v1::CoordinatorMessage::kWelcome).has_welcome());

  int64_t sequence = 0, durable = -1;
  while (durable < 2 && sequence < 1000) {
    agent.SendHeartbeat(++sequence);
    v1::CoordinatorMessage answer = agent.Await(v1::CoordinatorMessage::kHeartbeat);
    ASSERT_TRUE(answer.has_heartbeat());
    durable = answer.heartbeat().durable_sequence();
    ASSERT_LE(durable, sequence) << "nothing is confirmed that has not come";
    // A fact of a host wakes the core, as it would in a running cluster.
    agent.SendReleased({});
  }

  EXPECT_GE(durable, 2);
}

TEST_F(RpcTest, LogsComeFromTheHostOfTheRank) {
  FakeAgent agent(server_->address(), "host-a", 1);
  std::string id = SubmitOrDie(Spec()).job().id();
  ASSERT_TRUE(agent.Await(v1::CoordinatorMessage::kStart).has_start());
  v1::ReadLogRequest request;
  request.set_id("train");
  request.set_stream("stderr");
  v1::ReadLogReply reply;

  grpc::Status status = Call(*jobs_, &v1::Jobs::Stub::ReadLog, request, &reply);

  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(reply.data(), "log of rank 0 stderr");
  EXPECT_TRUE(reply.end());
  request.set_rank(5);
  status = Call(*jobs_, &v1::Jobs::Stub::ReadLog, request, &reply);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_THAT(status.error_message(), HasSubstr("ranks 0 to 0"));
}

TEST_F(RpcTest, LogsOfAnEarlierAttemptComeFromTheHostThatRanIt) {
  FakeAgent agent(server_->address(), "host-a", 1);
  v1::JobSpec spec = Spec();
  spec.mutable_fault_tolerance()->set_max_restarts(1);
  std::string id = SubmitOrDie(spec).job().id();
  v1::StartRanks first = agent.Await(v1::CoordinatorMessage::kStart).start();
  agent.SendFailure(first.generation(), 0);
  agent.SendReleased(first.generation());
  v1::StartRanks second = agent.Await(v1::CoordinatorMessage::kStart).start();
  ASSERT_EQ(second.generation().attempt(), 2);
  v1::ReadLogRequest request;
  request.set_id(id);
  request.set_attempt(1);
  v1::ReadLogReply reply;

  grpc::Status status = Call(*jobs_, &v1::Jobs::Stub::ReadLog, request, &reply);

  ASSERT_TRUE(status.ok()) << status.error_message();
  v1::ReadLog asked = agent.Await(v1::CoordinatorMessage::kReadLog).read_log();
  EXPECT_EQ(asked.generation().attempt(), 1);
  EXPECT_EQ(asked.generation().generation(), first.generation().generation());
  request.set_attempt(3);
  status = Call(*jobs_, &v1::Jobs::Stub::ReadLog, request, &reply);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_THAT(status.error_message(), HasSubstr("attempts 1 to 2"));
}

TEST_F(RpcTest, StopDoesNotWaitForAHostThatKeepsItsLogs) {
  FakeAgent agent(server_->address(), "host-a", 1);
  std::string id = SubmitOrDie(Spec()).job().id();
  ASSERT_TRUE(agent.Await(v1::CoordinatorMessage::kStart).has_start());
  agent.KeepLogs();
  std::future<grpc::Status> read = std::async(std::launch::async, [&] {
    v1::ReadLogRequest request;
    request.set_id(id);
    v1::ReadLogReply reply;
    return Call(*jobs_, &v1::Jobs::Stub::ReadLog, request, &reply);
  });
  ASSERT_TRUE(agent.Await(v1::CoordinatorMessage::kReadLog).has_read_log());

  std::future<void> stopped = std::async(std::launch::async, [&] {
    runtime_->Stop();
    server_->Stop();
  });
  bool in_time = stopped.wait_for(std::chrono::seconds(10)) == std::future_status::ready;
  runtime_->logs().Expire({absl::InfiniteDuration(), absl::InfiniteFuture()});

  EXPECT_TRUE(in_time);
  EXPECT_EQ(read.get().error_code(), grpc::StatusCode::UNAVAILABLE);
}

// Between the runtime's end and the server's: a call that nobody answers would keep the process for ever.
TEST_F(RpcTest, EveryCallIsAnsweredWhileTheCoordinatorStops) {
  FakeAgent agent(server_->address(), "host-a", 1);
  v1::SubmitReply submitted = SubmitOrDie(Spec());
  const std::string id = submitted.job().id();
  ASSERT_TRUE(agent.Await(v1::CoordinatorMessage::kStart).has_start());
  runtime_->Stop();

  std::map<std::string, grpc::StatusCode> answers;
  auto call = [&](const std::string& name, auto& stub, auto method, auto request, auto reply) {
    answers[name] = Call(stub, method, request, &reply).error_code();
  };
  auto of_job = [&](auto request) {
    request.set_id(id);
    return request;
  };
  auto of_node = [&](auto request) {
    request.set_id("host-a");
    return request;
  };
  v1::SubmitRequest submission;
  *submission.mutable_spec() = Spec();
  v1::GetJobRequest future = of_job(v1::GetJobRequest());
  future.set_min_revision(submitted.revision() + 1000);
  call("submit", *jobs_, &v1::Jobs::Stub::Submit, submission, v1::SubmitReply());
  call("get", *jobs_, &v1::Jobs::Stub::Get, future, v1::Job());
  call("list", *jobs_, &v1::Jobs::Stub::List, v1::ListJobsRequest(), v1::ListJobsReply());
  call("cancel", *jobs_, &v1::Jobs::Stub::Cancel, of_job(v1::CancelJobRequest()), v1::JobReply());
  call("suspend", *jobs_, &v1::Jobs::Stub::Suspend, of_job(v1::SuspendJobRequest()), v1::JobReply());
  call("resume", *jobs_, &v1::Jobs::Stub::Resume, of_job(v1::ResumeJobRequest()), v1::JobReply());
  call("delete", *jobs_, &v1::Jobs::Stub::Delete, of_job(v1::DeleteJobRequest()), v1::DeleteJobReply());
  call("log", *jobs_, &v1::Jobs::Stub::ReadLog, of_job(v1::ReadLogRequest()), v1::ReadLogReply());
  call("events", *jobs_, &v1::Jobs::Stub::ListEvents, of_job(v1::ListEventsRequest()), v1::ListEventsReply());
  call("cordon", *nodes_, &v1::Nodes::Stub::Cordon, of_node(v1::CordonNodeRequest()), v1::Node());
  call("drain", *nodes_, &v1::Nodes::Stub::Drain, of_node(v1::DrainNodeRequest()), v1::Node());
  call("uncordon", *nodes_, &v1::Nodes::Stub::Uncordon, of_node(v1::UncordonNodeRequest()), v1::Node());

  for (const auto& [name, code] : answers) EXPECT_NE(code, grpc::StatusCode::DEADLINE_EXCEEDED) << name;
  for (const char* refused : {"submit", "cancel", "suspend", "resume", "delete", "log", "events", "cordon", "drain"}) {
    EXPECT_EQ(answers[refused], grpc::StatusCode::UNAVAILABLE) << refused;
  }
}

// The disk stands still: whoever reads waits, and no host loses its lease because of that.
TEST(RpcOverASlowDisk, ReadsOfEventsDoNotKeepHeartbeatsFromBeingAnswered) {
  store::GatedStore store;
  std::unique_ptr<runtime::Runtime> runtime = *runtime::Runtime::Start({}, store);
  std::unique_ptr<Server> server = *Server::Start({.listen = "127.0.0.1:0"}, *runtime);
  auto jobs = v1::Jobs::NewStub(grpc::CreateChannel(server->address(), grpc::InsecureChannelCredentials()));
  FakeAgent agent(server->address(), "host-a", 1);
  ASSERT_TRUE(agent.Await(v1::CoordinatorMessage::kWelcome).has_welcome());
  v1::SubmitRequest submission;
  *submission.mutable_spec() = Spec();
  v1::SubmitReply submitted;
  grpc::ClientContext context;
  ASSERT_TRUE(jobs->Submit(&context, submission, &submitted).ok());

  store.CloseGate();
  std::vector<std::future<grpc::Status>> reads;
  for (int i = 0; i < 20; ++i) {
    reads.push_back(std::async(std::launch::async, [&] {
      grpc::ClientContext of_read;
      v1::ListEventsRequest request;
      request.set_id(submitted.job().id());
      v1::ListEventsReply reply;
      return jobs->ListEvents(&of_read, request, &reply);
    }));
  }
  store.AwaitReads(1);
  bool answered = true;
  for (int64_t sequence = 1; sequence <= 3 && answered; ++sequence) {
    agent.SendHeartbeat(sequence);
    answered = agent.Await(v1::CoordinatorMessage::kHeartbeat).has_heartbeat();
  }
  store.OpenGate();

  EXPECT_TRUE(answered);
  for (std::future<grpc::Status>& read : reads) EXPECT_TRUE(read.get().ok());
  runtime->Stop();
  server->Stop();
}

TEST_F(RpcTest, InvalidSpecificationIsRefusedWithAllItsFaults) {
  v1::SubmitRequest request;
  *request.mutable_spec() = Spec();
  request.mutable_spec()->mutable_model()->set_heads(7);
  request.mutable_spec()->mutable_data()->set_dataset("relative/path");
  v1::SubmitReply reply;

  grpc::Status status = Call(*jobs_, &v1::Jobs::Stub::Submit, request, &reply);

  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("model.heads"));
  EXPECT_THAT(status.error_message(), HasSubstr("data.dataset"));
}

TEST_F(RpcTest, DryRunStoresNothing) {
  v1::SubmitRequest request;
  *request.mutable_spec() = Spec();
  request.set_dry_run(true);
  v1::SubmitReply reply;

  ASSERT_TRUE(Call(*jobs_, &v1::Jobs::Stub::Submit, request, &reply).ok());

  EXPECT_EQ(reply.job().spec().training().precision(), "bf16");
  v1::ListJobsReply list;
  ASSERT_TRUE(Call(*jobs_, &v1::Jobs::Stub::List, v1::ListJobsRequest(), &list).ok());
  EXPECT_EQ(list.jobs_size(), 0);
}

TEST_F(RpcTest, SameKeyGivesTheSameJobAndAnotherSpecificationIsRefused) {
  v1::SubmitReply first = SubmitOrDie(Spec(), "key");
  v1::SubmitReply second = SubmitOrDie(Spec(), "key");
  v1::SubmitRequest other;
  *other.mutable_spec() = Spec();
  other.mutable_spec()->mutable_training()->set_steps(101);
  other.set_idempotency_key("key");
  v1::SubmitReply reply;

  grpc::Status status = Call(*jobs_, &v1::Jobs::Stub::Submit, other, &reply);

  EXPECT_FALSE(first.already_existed());
  EXPECT_TRUE(second.already_existed());
  EXPECT_EQ(first.job().id(), second.job().id());
  EXPECT_EQ(status.error_code(), grpc::StatusCode::ALREADY_EXISTS) << status.error_message();
}

TEST_F(RpcTest, ListGoesThroughAllPagesNewestFirst) {
  for (int i = 0; i < 5; ++i) {
    v1::JobSpec spec = Spec("job-" + std::to_string(i));
    (*spec.mutable_metadata()->mutable_labels())["parity"] = i % 2 ? "odd" : "even";
    SubmitOrDie(spec);
  }
  v1::ListJobsRequest request;
  request.set_page_size(2);
  std::vector<std::string> names;
  std::vector<int> sizes;
  do {
    v1::ListJobsReply page;
    ASSERT_TRUE(Call(*jobs_, &v1::Jobs::Stub::List, request, &page).ok());
    for (const v1::Job& job : page.jobs()) names.push_back(job.name());
    sizes.push_back(page.jobs_size());
    request.set_page_token(page.next_page_token());
  } while (!request.page_token().empty());

  EXPECT_THAT(names, ElementsAre("job-4", "job-3", "job-2", "job-1", "job-0"));
  EXPECT_THAT(sizes, ElementsAre(2, 2, 1));
  v1::ListJobsRequest odd;
  (*odd.mutable_labels())["parity"] = "odd";
  odd.add_phases(v1::JOB_PHASE_QUEUED);
  v1::ListJobsReply reply;
  ASSERT_TRUE(Call(*jobs_, &v1::Jobs::Stub::List, odd, &reply).ok());
  EXPECT_EQ(reply.jobs_size(), 2);
  request.set_page_token("no number");
  EXPECT_EQ(Call(*jobs_, &v1::Jobs::Stub::List, request, &reply).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(RpcTest, CancelledJobEndsItsWatchAndCanBeDeleted) {
  std::string id = SubmitOrDie(Spec()).job().id();
  int64_t submitted_at = Get(id).revision();
  v1::CancelJobRequest cancel;
  cancel.set_id(id);
  cancel.set_reason("not needed");
  v1::JobReply cancelled;
  ASSERT_TRUE(Call(*jobs_, &v1::Jobs::Stub::Cancel, cancel, &cancelled).ok());

  grpc::ClientContext context;
  v1::WatchJobRequest watch;
  watch.set_id(id);
  watch.set_after_revision(submitted_at);
  auto reader = jobs_->Watch(&context, watch);
  v1::Job job;
  v1::JobPhase last = v1::JOB_PHASE_UNSPECIFIED;
  while (reader->Read(&job)) last = job.phase();
  EXPECT_TRUE(reader->Finish().ok());
  EXPECT_EQ(last, v1::JOB_PHASE_CANCELLED);

  v1::ListEventsRequest list;
  list.set_id(id);
  list.set_page_size(1);
  v1::ListEventsReply events;
  ASSERT_TRUE(Call(*jobs_, &v1::Jobs::Stub::ListEvents, list, &events).ok());
  ASSERT_EQ(events.events_size(), 1);
  list.set_page_token(events.next_page_token());
  int64_t first = events.events(0).sequence();
  events.Clear();
  ASSERT_TRUE(Call(*jobs_, &v1::Jobs::Stub::ListEvents, list, &events).ok());
  ASSERT_EQ(events.events_size(), 1);
  EXPECT_EQ(events.events(0).sequence(), first + 1);

  v1::DeleteJobRequest remove;
  remove.set_id(id);
  v1::DeleteJobReply removed;
  EXPECT_TRUE(Call(*jobs_, &v1::Jobs::Stub::Delete, remove, &removed).ok());
  v1::GetJobRequest get;
  get.set_id(id);
  grpc::Status status = Call(*jobs_, &v1::Jobs::Stub::Get, get, &job);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_THAT(status.error_message(), HasSubstr("llmctl list"));
}

TEST_F(RpcTest, WatchFromARevisionThatHasNotHappenedIsOutOfRange) {
  v1::SubmitReply submitted = SubmitOrDie(Spec());
  grpc::ClientContext context;
  v1::WatchJobRequest watch;
  watch.set_id(submitted.job().id());
  watch.set_after_revision(submitted.revision() + 1000);

  auto reader = jobs_->Watch(&context, watch);
  v1::Job job;

  EXPECT_FALSE(reader->Read(&job));
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::OUT_OF_RANGE);
}

TEST_F(RpcTest, ReadOfAFutureRevisionWaitsForIt) {
  v1::SubmitReply submitted = SubmitOrDie(Spec());
  v1::GetJobRequest get;
  get.set_id(submitted.job().id());
  get.set_min_revision(submitted.revision() + 1);
  std::future<grpc::Status> read = std::async(std::launch::async, [&] {
    v1::Job job;
    return Call(*jobs_, &v1::Jobs::Stub::Get, get, &job);
  });

  SubmitOrDie(Spec("another"));

  EXPECT_TRUE(read.get().ok());
}

TEST_F(RpcTest, DrainedHostShowsWhatItWaitsForUntilItIsEmpty) {
  FakeAgent agent(server_->address(), "host-a", 1);
  ASSERT_TRUE(agent.Await(v1::CoordinatorMessage::kWelcome).has_welcome());
  std::string id = SubmitOrDie(Spec()).job().id();
  v1::Generation generation = agent.Await(v1::CoordinatorMessage::kStart).start().generation();
  agent.SendRank(generation, 0, v1::RANK_PHASE_RUNNING);
  WatchUntil(id, v1::JOB_PHASE_RUNNING);
  v1::DrainNodeRequest drain;
  drain.set_id("host-a");
  drain.set_reason("new disks");
  v1::Node node;

  grpc::Status status = Call(*nodes_, &v1::Nodes::Stub::Drain, drain, &node);

  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(node.service(), "draining");
  EXPECT_EQ(node.service_reason(), "new disks; waits for " + id);
  v1::StopRanks stop = agent.Await(v1::CoordinatorMessage::kStop).stop();
  EXPECT_TRUE(stop.checkpoint_first());
  agent.SendYielded(generation, 0);
  agent.SendReleased(generation);
  EXPECT_THAT(WatchUntil(id, v1::JOB_PHASE_QUEUED).phase(), v1::JOB_PHASE_QUEUED);
  v1::GetNodeRequest get;
  get.set_id("host-a");
  ASSERT_TRUE(Call(*nodes_, &v1::Nodes::Stub::Get, get, &node).ok());
  EXPECT_EQ(node.service(), "drained");
  v1::UncordonNodeRequest uncordon;
  uncordon.set_id("host-a");
  ASSERT_TRUE(Call(*nodes_, &v1::Nodes::Stub::Uncordon, uncordon, &node).ok());
  EXPECT_EQ(node.service(), "open");
  EXPECT_TRUE(agent.Await(v1::CoordinatorMessage::kStart).has_start()) << "the job comes back";
}

TEST_F(RpcTest, ChangesOfHostsAreChecked) {
  v1::CordonNodeRequest cordon;
  cordon.set_id("nowhere");
  v1::DrainNodeRequest drain;
  drain.set_id("nowhere");
  drain.set_deadline_ms(-1);
  v1::Node node;

  grpc::Status unknown = Call(*nodes_, &v1::Nodes::Stub::Cordon, cordon, &node);
  grpc::Status negative = Call(*nodes_, &v1::Nodes::Stub::Drain, drain, &node);
  cordon.set_reason(std::string(2000, 'x'));
  grpc::Status long_winded = Call(*nodes_, &v1::Nodes::Stub::Cordon, cordon, &node);

  EXPECT_EQ(unknown.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(negative.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(negative.error_message(), HasSubstr("deadline_ms is -1"));
  EXPECT_EQ(long_winded.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(RpcTest, HostsAreListedWithTheirDevicesAndJobs) {
  FakeAgent a(server_->address(), "host-a", 1);
  FakeAgent b(server_->address(), "host-b", 2);
  ASSERT_TRUE(a.Await(v1::CoordinatorMessage::kWelcome).has_welcome());
  ASSERT_TRUE(b.Await(v1::CoordinatorMessage::kWelcome).has_welcome());
  v1::JobSpec spec = Spec();
  spec.mutable_resources()->set_devices_per_worker(2);
  std::string id = SubmitOrDie(spec).job().id();
  ASSERT_TRUE(b.Await(v1::CoordinatorMessage::kStart).has_start());

  v1::ListNodesRequest request;
  request.set_page_size(1);
  v1::ListNodesReply first, second;
  ASSERT_TRUE(Call(*nodes_, &v1::Nodes::Stub::List, request, &first).ok());
  request.set_page_token(first.next_page_token());
  ASSERT_TRUE(Call(*nodes_, &v1::Nodes::Stub::List, request, &second).ok());

  ASSERT_EQ(first.nodes_size(), 1);
  ASSERT_EQ(second.nodes_size(), 1);
  EXPECT_EQ(first.nodes(0).id(), "host-a");
  EXPECT_EQ(first.nodes(0).state(), "ready");
  EXPECT_TRUE(first.nodes(0).has_last_seen());
  EXPECT_EQ(second.nodes(0).jobs_by_device().at(1), id);
  EXPECT_EQ(second.next_page_token(), "");
}

// What the coordinator answers to a host that says this.
v1::CoordinatorMessage AnswerTo(const Server& server, const v1::Hello& hello) {
  auto stub = v1::WorkerLink::NewStub(grpc::CreateChannel(server.address(), grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  auto stream = stub->Connect(&context);
  v1::AgentMessage message;
  *message.mutable_hello() = hello;
  stream->Write(message);
  v1::CoordinatorMessage answer, more;
  EXPECT_TRUE(stream->Read(&answer));
  if (!answer.has_refused()) {
    context.TryCancel();
    return answer;
  }
  EXPECT_FALSE(stream->Read(&more));
  EXPECT_FALSE(stream->Finish().ok());
  return answer;
}

TEST_F(RpcTest, AgentOfAnotherProtocolIsRefusedWithWhatToDo) {
  v1::Hello hello;
  hello.set_node("host-a");
  hello.set_incarnation(1);
  hello.set_oldest_protocol_version(98);
  hello.set_protocol_version(99);

  EXPECT_THAT(AnswerTo(*server_, hello).refused().reason(),
              ::testing::AllOf(HasSubstr("speaks link protocol 98 to 99"), HasSubstr("upgrade llm-coordinator")));
}

TEST_F(RpcTest, NodeNamesThatCannotStandInATableOrAPathAreRefused) {
  v1::Hello hello;
  hello.set_incarnation(1);
  hello.set_protocol_version(kLinkProtocol.newest);
  for (const char* name : {"", "rack1/host2", "host\x1b[31m", "../host", "a b", "größe"}) {
    hello.set_node(name);
    EXPECT_THAT(AnswerTo(*server_, hello).refused().reason(), HasSubstr("--node")) << name;
  }
  hello.set_node("rack1.host-2_b");
  EXPECT_TRUE(AnswerTo(*server_, hello).has_welcome());
}

// A newer agent says more than this coordinator knows.
TEST_F(RpcTest, MessageOfAnUnknownKindIsPassedOverAndTheLinkStays) {
  FakeAgent agent(server_->address(), "host-a", 1);
  v1::CoordinatorMessage welcome = agent.Await(v1::CoordinatorMessage::kWelcome);
  EXPECT_EQ(welcome.welcome().protocol_version(), v1::LINK_PROTOCOL_NEWEST);
  EXPECT_EQ(welcome.welcome().build_id(), "0.1.0+coordinator");
  v1::AgentMessage unknown;
  unknown.GetReflection()->MutableUnknownFields(&unknown)->AddLengthDelimited(999, "news");
  agent.Send(unknown);
  v1::AgentMessage without_operation;
  without_operation.mutable_store()->set_request_id(5);
  agent.Send(without_operation);

  agent.SendHeartbeat(1);

  EXPECT_THAT(agent.Await(v1::CoordinatorMessage::kStore).store().error(), HasSubstr("no operation"));
  EXPECT_TRUE(agent.Await(v1::CoordinatorMessage::kHeartbeat).has_heartbeat());
}

TEST_F(RpcTest, AdminTellsVersionsAndWhatIsInQuarantine) {
  auto admin = v1::Admin::NewStub(grpc::CreateChannel(server_->address(), grpc::InsecureChannelCredentials()));
  v1::VersionReply version;
  v1::ListQuarantineReply quarantine;
  v1::ReleaseQuarantineRequest release;
  release.set_entity("node host-a");
  v1::ReleaseQuarantineReply released;

  ASSERT_TRUE(Call(*admin, &v1::Admin::Stub::GetVersion, v1::GetVersionRequest(), &version).ok());
  ASSERT_TRUE(Call(*admin, &v1::Admin::Stub::ListQuarantine, v1::ListQuarantineRequest(), &quarantine).ok());

  EXPECT_EQ(version.build_id(), "0.1.0+coordinator");
  EXPECT_EQ(version.protocol_version(), v1::LINK_PROTOCOL_NEWEST);
  EXPECT_EQ(version.term(), 1);
  EXPECT_EQ(quarantine.entities_size(), 0);
  EXPECT_EQ(Call(*admin, &v1::Admin::Stub::ReleaseQuarantine, release, &released).error_code(),
            grpc::StatusCode::NOT_FOUND);
}

TEST_F(RpcTest, BackupIsStreamedAndLeavesNothingBehind) {
  std::string id = SubmitOrDie(Spec()).job().id();
  auto admin = v1::Admin::NewStub(grpc::CreateChannel(server_->address(), grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  auto stream = admin->Backup(&context, v1::BackupRequest());
  {
    std::ofstream file(directory_ + "/received", std::ios::binary);
    v1::BackupPiece piece;
    while (stream->Read(&piece)) file << piece.data();
  }
  ASSERT_TRUE(stream->Finish().ok());

  ASSERT_TRUE(store::RestoreSqliteStore({.backup = directory_ + "/received", .path = directory_ + "/new.db"}).ok());

  EXPECT_EQ((*store::OpenSqliteStore({.path = directory_ + "/new.db"}))->Load()->jobs.at(0).id.value(), id);
  EXPECT_FALSE(std::filesystem::exists(directory_ + "/backup.tmp"));
  EXPECT_FALSE(std::filesystem::exists(directory_ + "/backup.tmp.db"));
}

TEST_F(RpcTest, OnlyLoopbackIsServedUnlessToldOtherwise) {
  absl::Status refused = Server::Start({.listen = "0.0.0.0:0"}, *runtime_).status();

  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("--insecure-listen"));
  EXPECT_TRUE(Server::Start({.listen = "0.0.0.0:0", .insecure_listen = true}, *runtime_).ok());
}

}  // namespace
}  // namespace llmctl::rpc
