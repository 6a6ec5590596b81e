#include <sstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/command/verbs.h"
#include "tests/unit/client/fake_cluster.h"

namespace llmctl::client {
namespace {

using testing::HasSubstr;

v1::Node MakeNode(const std::string& service, const std::string& reason = "") {
  v1::Node node;
  node.set_id("host-3");
  node.set_state("ready");
  node.set_service(service);
  node.set_service_reason(reason);
  node.add_devices()->set_kind("cpu");
  return node;
}

class NodeVerbs : public testing::Test {
 protected:
  FakeCluster cluster_;
  std::ostringstream out_, err_;
  Session session_{.cluster = cluster_, .out = out_, .err = err_};
};

TEST_F(NodeVerbs, ListShowsWhatAHostMayDoAndWhy) {
  *cluster_.nodes.add_nodes() = MakeNode("open");
  *cluster_.nodes.add_nodes() = MakeNode("cordoned", "new disks");

  ASSERT_EQ(*ListNodes(session_), ExitCode::kOk);

  EXPECT_THAT(out_.str(), HasSubstr("host-3  ready "));
  EXPECT_THAT(out_.str(), HasSubstr("ready, cordoned"));
  EXPECT_THAT(out_.str(), HasSubstr("new disks"));
}

TEST_F(NodeVerbs, GetShowsAHostAndJsonAllOfIt) {
  cluster_.node = MakeNode("draining", "waits for j-1");
  cluster_.node.add_capabilities("search-checkpoints");

  ASSERT_EQ(*GetNode({.node = "host-3"}, session_), ExitCode::kOk);
  EXPECT_THAT(out_.str(), HasSubstr("state:       ready, draining\nreason:      waits for j-1\n"));

  session_.format = Format::kJson;
  ASSERT_EQ(*GetNode({.node = "host-3"}, session_), ExitCode::kOk);
  EXPECT_THAT(out_.str(), HasSubstr("\"service\": \"draining\""));
  EXPECT_THAT(out_.str(), HasSubstr("\"search-checkpoints\""));
}

TEST_F(NodeVerbs, HostThatTheCoordinatorRefusesSaysWhy) {
  cluster_.node = MakeNode("open");
  cluster_.node.set_refused("node host-3 is quarantined: handling it has crashed the coordinator 2 times");

  ASSERT_EQ(*GetNode({.node = "host-3"}, session_), ExitCode::kOk);

  EXPECT_THAT(out_.str(), HasSubstr("reason:      node host-3 is quarantined"));
}

TEST_F(NodeVerbs, QuarantineAndPreflightAreShown) {
  cluster_.node = MakeNode("open");
  cluster_.node.set_trust("burn-in");
  cluster_.node.set_trust_reason("rank 0 was killed by signal 7");
  cluster_.node.set_strike_score(3);
  cluster_.node.mutable_preflight()->set_passed(true);
  v1::PreflightCheck* check = cluster_.node.mutable_preflight()->add_checks();
  check->set_name("matmul");
  check->set_outcome("passed");
  check->set_value(250.25);
  check->set_unit("GFLOP/s");

  ASSERT_EQ(*GetNode({.node = "host-3"}, session_), ExitCode::kOk);

  EXPECT_THAT(out_.str(), HasSubstr("ready, burn-in"));
  EXPECT_THAT(out_.str(), HasSubstr("reason:      rank 0 was killed by signal 7"));
  EXPECT_THAT(out_.str(), HasSubstr("strikes:     3.0"));
  EXPECT_THAT(out_.str(), HasSubstr("pre-flight:  passed 1970-"));
  EXPECT_THAT(out_.str(), HasSubstr("250.2 GFLOP/s"));
}

TEST_F(NodeVerbs, StrikesAreListedNewestFirst) {
  cluster_.node = MakeNode("open");
  for (const char* reason : {"older", "newer"}) {
    v1::Strike* strike = cluster_.node.add_strikes();
    strike->set_weight(1);
    strike->set_job("j-1");
    strike->set_reason(reason);
  }

  ASSERT_EQ(*NodeStrikes({.node = "host-3"}, session_), ExitCode::kOk);

  EXPECT_LT(out_.str().find("newer"), out_.str().find("older"));
  EXPECT_THAT(out_.str(), HasSubstr("j-1"));
}

TEST_F(NodeVerbs, CordonTellsWhy) {
  cluster_.node = MakeNode("cordoned", "new disks");

  ASSERT_EQ(*CordonNode({.node = "host-3", .reason = "new disks"}, session_), ExitCode::kOk);

  EXPECT_EQ(cluster_.cordoned.at(0).id(), "host-3");
  EXPECT_EQ(cluster_.cordoned.at(0).reason(), "new disks");
  EXPECT_EQ(out_.str(), "host-3 ready, cordoned: new disks\n");
}

TEST_F(NodeVerbs, DrainLeavesTheDeadlineToTheCoordinatorUnlessItIsGiven) {
  cluster_.node = MakeNode("draining");

  ASSERT_EQ(*DrainNode({.node = "host-3"}, session_), ExitCode::kOk);
  ASSERT_EQ(*DrainNode({.node = "host-3", .deadline = absl::Minutes(2)}, session_), ExitCode::kOk);

  EXPECT_FALSE(cluster_.drained.at(0).has_deadline_ms());
  EXPECT_EQ(cluster_.drained.at(1).deadline_ms(), 120000);
}

TEST_F(NodeVerbs, DrainWaitsUntilTheHostIsEmpty) {
  cluster_.node = MakeNode("draining");
  cluster_.node_later = {MakeNode("draining"), MakeNode("drained")};

  ASSERT_EQ(*DrainNode({.node = "host-3", .wait = true}, session_), ExitCode::kOk);

  EXPECT_EQ(out_.str(), "host-3 ready, drained\n");
}

TEST_F(NodeVerbs, DrainThatSomebodyElseEndedIsNoSuccess) {
  cluster_.node = MakeNode("draining");
  cluster_.node_later = {MakeNode("open")};

  EXPECT_EQ(DrainNode({.node = "host-3", .wait = true}, session_).status().code(), absl::StatusCode::kAborted);
}

}  // namespace
}  // namespace llmctl::client
