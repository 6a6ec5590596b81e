// The coordinator's own faults, on a real process with a real store: its disk fails, and all of its hosts come at once.
#include <unistd.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include "llmctl/v1/jobs.grpc.pb.h"
#include "llmctl/v1/nodes.grpc.pb.h"
#include "tests/integration/coordinator_process.h"
#include "tests/unit/rpc/fake_agent.h"

namespace llmctl {
namespace {

using rpc::FakeAgent;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kHosts = 300;
constexpr auto kCallPatience = std::chrono::seconds(20);
// Of all hosts, from nothing to admitted. They take well under a second on an idle machine.
constexpr auto kStormPatience = std::chrono::seconds(20);

v1::JobSpec Spec(const std::string& name, int devices = 1) {
  v1::JobSpec spec;
  spec.set_api_version("llmctl/v1");
  spec.set_kind("TrainingJob");
  spec.mutable_metadata()->set_name(name);
  spec.mutable_model()->set_architecture("llama");
  spec.mutable_model()->set_layers(2);
  spec.mutable_model()->set_hidden_size(64);
  spec.mutable_model()->set_heads(4);
  spec.mutable_data()->set_dataset("/data");
  spec.mutable_data()->set_sequence_length(64);
  spec.mutable_training()->set_steps(100);
  spec.mutable_training()->set_global_batch_size(8);
  spec.mutable_training()->set_micro_batch_size(4);
  spec.mutable_checkpoint()->set_directory("/checkpoints");
  spec.mutable_resources()->set_devices_per_worker(devices);
  return spec;
}

class CoordinatorFaults : public ::testing::Test {
 protected:
  void Start(const std::vector<std::string>& flags) {
    coordinator_.Start(flags);
    // Not the connection to a process that was killed.
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    auto channel =
        grpc::CreateCustomChannel(coordinator_.address(), grpc::InsecureChannelCredentials(), arguments);
    ASSERT_TRUE(channel->WaitForConnected(std::chrono::system_clock::now() + kCallPatience));
    jobs_ = v1::Jobs::NewStub(channel);
    nodes_ = v1::Nodes::NewStub(channel);
  }

  grpc::Status Submit(const v1::JobSpec& spec, const std::string& key, v1::SubmitReply& reply) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kCallPatience);
    v1::SubmitRequest request;
    *request.mutable_spec() = spec;
    request.set_idempotency_key(key);
    return jobs_->Submit(&context, request, &reply);
  }
  std::string SubmitOrDie(const v1::JobSpec& spec, const std::string& key = "") {
    v1::SubmitReply reply;
    grpc::Status status = Submit(spec, key, reply);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return reply.job().id();
  }

  // By name, oldest first.
  std::vector<std::string> JobNames() {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kCallPatience);
    v1::ListJobsReply reply;
    grpc::Status status = jobs_->List(&context, v1::ListJobsRequest(), &reply);
    EXPECT_TRUE(status.ok()) << status.error_message();
    std::vector<std::string> names;
    for (const v1::Job& job : reply.jobs()) names.insert(names.begin(), job.name());
    return names;
  }

  int ReadyHosts() {
    int ready = 0;
    v1::ListNodesRequest request;
    do {
      grpc::ClientContext context;
      context.set_deadline(std::chrono::system_clock::now() + kCallPatience);
      v1::ListNodesReply page;
      EXPECT_TRUE(nodes_->List(&context, request, &page).ok());
      for (const v1::Node& node : page.nodes()) ready += node.state() == "ready";
      request.set_page_token(page.next_page_token());
    } while (!request.page_token().empty());
    return ready;
  }

  CoordinatorProcess coordinator_;
  std::unique_ptr<v1::Jobs::Stub> jobs_;
  std::unique_ptr<v1::Nodes::Stub> nodes_;
};

// Every write of the store fails for a while, with a job running. What was acknowledged is there at the end, what was
// refused says why, nothing is there twice, and the job goes on: its host keeps its lease, and the checkpoint that it
// offers meanwhile is committed when the disk is back.
TEST_F(CoordinatorFaults, FailingDiskRefusesChangesAndLosesNothing) {
  Start({"--heartbeat-interval=100ms", "--lease=1s"});
  FakeAgent agent(coordinator_.address(), "host-a", 1);
  SubmitOrDie(Spec("running"));
  v1::Generation generation = agent.Await(v1::CoordinatorMessage::kStart).start().generation();
  for (auto phase : {v1::RANK_PHASE_STARTING, v1::RANK_PHASE_RUNNING}) agent.SendRank(generation, 0, phase);
  SubmitOrDie(Spec("acknowledged", 2));
  agent.HeartbeatEvery(std::chrono::milliseconds(100));

  coordinator_.LimitFileSize(1);
  v1::SubmitReply reply;
  grpc::Status in_doubt = Submit(Spec("in-doubt", 2), "key", reply);
  grpc::Status refused = Submit(Spec("refused", 2), "", reply);
  v1::AgentMessage message;
  v1::CheckpointCommitRequest* offer = message.mutable_checkpoint_commit();
  *offer->mutable_generation() = generation;
  offer->set_request_id(7);
  offer->set_step(50);
  offer->set_path("/checkpoints/step-00000050-a1-g1");
  offer->set_manifest_digest("d");
  offer->set_next_sample(400);
  agent.Send(message);
  // Reads are served, from what was acknowledged.
  EXPECT_EQ(JobNames(), (std::vector<std::string>{"running", "acknowledged"}));
  coordinator_.LimitFileSize(RLIM_INFINITY);

  EXPECT_EQ(in_doubt.error_code(), grpc::StatusCode::UNAVAILABLE) << in_doubt.error_message();
  EXPECT_THAT(in_doubt.error_message(), HasSubstr("repeat it with the same idempotency key"));
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::UNAVAILABLE) << refused.error_message();
  EXPECT_THAT(refused.error_message(), HasSubstr("cannot write its store"));
  EXPECT_TRUE(agent.Await(v1::CoordinatorMessage::kCheckpointCommit).checkpoint_commit().committed());
  SubmitOrDie(Spec("in-doubt", 2), "key");
  SubmitOrDie(Spec("afterwards", 2));
  coordinator_.Kill();
  Start({"--heartbeat-interval=100ms", "--lease=1s"});
  EXPECT_EQ(JobNames(), (std::vector<std::string>{"running", "acknowledged", "in-doubt", "afterwards"}));
  EXPECT_THAT(coordinator_.Log(), Not(HasSubstr("lease-expired")));
}

// Hundreds of hosts say hello at once, some of them twice because they hung up too soon: to a coordinator with a long
// queue, and again after it was killed. All are admitted within the patience of an agent, nobody is refused, and
// users are served meanwhile.
TEST_F(CoordinatorFaults, ReconnectStormAdmitsEveryHost) {
  const std::vector<std::string> flags = {"--lease=60s"};
  Start(flags);
  for (int i = 0; i < 500; ++i) SubmitOrDie(Spec("queued", 8));

  for (int round = 0; round < 2; ++round) {
    std::vector<std::unique_ptr<FakeAgent>> agents(kHosts);
    std::atomic<int> admitted = 0;
    std::vector<std::thread> hosts;
    auto began = std::chrono::steady_clock::now();
    for (int i = 0; i < kHosts; ++i) {
      hosts.emplace_back([&, i] {
        std::string node = absl::StrCat("host-", i);
        if (i % 2 == 0) FakeAgent(coordinator_.address(), node, 1);  // says hello and is gone
        agents[i] = std::make_unique<FakeAgent>(coordinator_.address(), node, 1);
        if (agents[i]->Await(v1::CoordinatorMessage::kWelcome).has_welcome()) ++admitted;
      });
    }
    auto asked = std::chrono::steady_clock::now();
    SubmitOrDie(Spec("meanwhile", 8));
    auto answered = std::chrono::steady_clock::now();
    for (std::thread& host : hosts) host.join();
    auto took = std::chrono::steady_clock::now() - began;

    EXPECT_EQ(admitted, kHosts);
    EXPECT_EQ(ReadyHosts(), kHosts);
    EXPECT_LT(took, kStormPatience);
    EXPECT_LT(answered - asked, kStormPatience / 4);
    std::printf("%d hosts admitted in %.2f s\n", kHosts, std::chrono::duration<double>(took).count());
    EXPECT_THAT(coordinator_.Log(), Not(HasSubstr("link-refused")));
    coordinator_.Kill();
    Start(flags);
  }
}

}  // namespace
}  // namespace llmctl
