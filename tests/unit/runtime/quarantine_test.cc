// A coordinator that crashes on one entity: what its next lives make of it. Crashes are what they are to a restart: a
// marker that was left behind.
#include "coordinator/runtime/quarantine.h"

#include <cstdlib>
#include <filesystem>
#include <future>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "coordinator/runtime/runtime.h"
#include "coordinator/store/sqlite/sqlite_store.h"
#include "tests/unit/runtime/silent_link.h"

namespace llmctl::runtime {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class RefusalLink final : public SilentLink {
 public:
  void Welcome() override { answer.set_value("welcome"); }
  void Refuse(const std::string& reason) override { answer.set_value(reason); }

  std::promise<std::string> answer;
};

class QuarantineTest : public ::testing::Test {
 protected:
  QuarantineTest() {
    char path[] = "/tmp/llm-quarantine-XXXXXX";
    directory_ = mkdtemp(path);
  }
  ~QuarantineTest() override {
    Stop();
    std::filesystem::remove_all(directory_);
  }

  void Start() {
    marker_.emplace(*CrashMarker::Open(directory_ + "/working-on"));
    store_ = *store::OpenSqliteStore({.path = directory_ + "/coordinator.db"});
    absl::StatusOr<std::unique_ptr<Runtime>> started = Runtime::Start({.crash_marker = &*marker_}, *store_);
    ASSERT_TRUE(started.ok()) << started.status();
    runtime_ = *std::move(started);
  }
  void Stop() {
    runtime_.reset();
    store_.reset();
    marker_.reset();
  }
  void CrashOn(const std::string& kind, const std::string& id, Focus::Stage stage = Focus::Stage::kStep) {
    Stop();
    CrashMarker::Open(directory_ + "/working-on")->focus().Set(stage, kind, id);
    Start();
  }

  Reply Ask(UserRequest request) {
    std::promise<Reply> promise;
    runtime_->Ask(std::move(request), [&](const Reply& reply) { promise.set_value(reply); });
    return promise.get_future().get();
  }
  JobId Submit(const std::string& key = "") {
    core::JobSubmitted submitted;
    submitted.name = "train";
    submitted.project = "default";
    submitted.idempotency_key = key;
    Reply reply = Ask(submitted);
    EXPECT_TRUE(reply.status.ok()) << reply.status;
    return reply.job.job->id;
  }
  const Job& Find(const JobId& id) { return *(kept_ = runtime_->snapshot())->FindJob(id)->job; }
  absl::Status Release(const std::string& entity) {
    std::promise<absl::Status> promise;
    runtime_->ReleaseQuarantine(entity, [&](const absl::Status& status) { promise.set_value(status); });
    return promise.get_future().get();
  }
  std::string Hello(const std::string& node) {
    auto link = std::make_shared<RefusalLink>();
    core::WorkerConnected hello;
    hello.node.id = NodeId(node);
    hello.node.incarnation = 1;
    hello.link = runtime_->NextLink();
    runtime_->Connect(hello, link);
    return link->answer.get_future().get();
  }

  std::string directory_;
  std::optional<CrashMarker> marker_;
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<Runtime> runtime_;
  std::shared_ptr<const Snapshot> kept_;
};

TEST_F(QuarantineTest, OneCrashIsForgivenAndTheSecondHoldsTheJobAndNoOther) {
  Start();
  JobId bad = Submit(), good = Submit();

  CrashOn("job", bad.value());
  EXPECT_EQ(Find(bad).phase, JobPhase::kQueued);
  EXPECT_THAT(runtime_->ListQuarantine(), IsEmpty());
  CrashOn("job", bad.value());

  EXPECT_EQ(Find(bad).phase, JobPhase::kSuspended);
  EXPECT_THAT(Find(bad).reason, HasSubstr("crashed the coordinator 2 times"));
  EXPECT_EQ(Find(good).phase, JobPhase::kQueued);
  ASSERT_THAT(runtime_->ListQuarantine(), SizeIs(1));
  EXPECT_EQ(runtime_->ListQuarantine()[0].crash.entity, "job j-1");
  EXPECT_EQ(store_->ReadEvents(bad, 0, 10)->back().kind, "quarantined");
  // What was done is in the store: another restart adds nothing.
  int64_t revision = runtime_->snapshot()->revision();
  Stop();
  Start();
  EXPECT_EQ(runtime_->snapshot()->revision(), revision);
  EXPECT_EQ(Find(bad).phase, JobPhase::kSuspended);
}

TEST_F(QuarantineTest, StopInPeaceIsNoCrash) {
  Start();
  JobId id = Submit();
  for (int i = 0; i < 3; ++i) {
    Stop();
    Start();
  }

  EXPECT_EQ(Find(id).phase, JobPhase::kQueued);
}

TEST_F(QuarantineTest, ResumedJobHasAllItsChancesAgain) {
  Start();
  JobId id = Submit();
  CrashOn("job", id.value());
  CrashOn("job", id.value());

  EXPECT_TRUE(Ask(core::JobResumed{.job = id}).status.ok());

  EXPECT_EQ(Find(id).phase, JobPhase::kQueued);
  EXPECT_THAT(runtime_->ListQuarantine(), IsEmpty());
  CrashOn("job", id.value());
  EXPECT_EQ(Find(id).phase, JobPhase::kQueued);
}

TEST_F(QuarantineTest, JobThatCrashesEvenWhenHeldGivesWayToAStandInUntilItIsReleased) {
  Start();
  JobId id = Submit();
  for (int i = 0; i < 4; ++i) CrashOn("job", id.value());

  EXPECT_TRUE(Find(id).stand_in);
  EXPECT_EQ(Ask(core::JobResumed{.job = id}).status.code(), absl::StatusCode::kFailedPrecondition);
  Stop();
  Start();
  EXPECT_TRUE(Find(id).stand_in);
  ASSERT_THAT(runtime_->ListQuarantine(), SizeIs(1));
  EXPECT_THAT(runtime_->ListQuarantine()[0].reason, HasSubstr("its record is kept"));

  EXPECT_TRUE(Release("job j-1").ok());
  Stop();
  Start();

  EXPECT_FALSE(Find(id).stand_in);
  EXPECT_EQ(Find(id).phase, JobPhase::kSuspended);
  EXPECT_EQ(Find(id).name, "train");
  EXPECT_THAT(runtime_->ListQuarantine(), IsEmpty());
  EXPECT_TRUE(Ask(core::JobResumed{.job = id}).status.ok());
  EXPECT_EQ(Find(id).phase, JobPhase::kQueued);
}

// A user who was told that it is cancelled is not to see it again.
TEST_F(QuarantineTest, StandInThatWasCancelledStaysCancelled) {
  Start();
  JobId id = Submit();
  for (int i = 0; i < 4; ++i) CrashOn("job", id.value());
  EXPECT_TRUE(Ask(core::JobCancelled{.job = id}).status.ok());
  EXPECT_TRUE(Release("job j-1").ok());
  Stop();

  Start();

  EXPECT_EQ(Find(id).phase, JobPhase::kCancelled);
}

TEST_F(QuarantineTest, JobThatCrashesTheReaderIsNotReadAndTheOthersAre) {
  Start();
  JobId bad = Submit(), good = Submit();

  CrashOn("job", bad.value(), Focus::Stage::kLoad);
  CrashOn("job", bad.value(), Focus::Stage::kLoad);

  EXPECT_EQ(Find(bad).phase, JobPhase::kSuspended);
  EXPECT_TRUE(Find(bad).stand_in);
  EXPECT_THAT(Find(bad).reason, AllOf(HasSubstr("quarantined"), HasSubstr("reading it")));
  EXPECT_EQ(Find(good).phase, JobPhase::kQueued);
  ASSERT_THAT(runtime_->ListQuarantine(), SizeIs(1));
  // The stand-in is an ordinary record.
  int64_t revision = runtime_->snapshot()->revision();
  Stop();
  Start();
  EXPECT_EQ(runtime_->snapshot()->revision(), revision);
  EXPECT_TRUE(Find(bad).stand_in);
}

TEST_F(QuarantineTest, HostIsRefusedUntilItIsReleased) {
  Start();
  CrashOn("node", "host-a");
  CrashOn("node", "host-a");

  EXPECT_THAT(Hello("host-a"), AllOf(HasSubstr("node host-a is quarantined"), HasSubstr("llmctl admin release")));
  EXPECT_EQ(Hello("host-b"), "welcome");
  EXPECT_TRUE(Release("node host-a").ok());

  EXPECT_EQ(Hello("host-a"), "welcome");
  Stop();
  Start();
  EXPECT_EQ(Hello("host-a"), "welcome");
}

// Its record may be what crashes, when it is lost for instance. A node that was closed must not open by that.
TEST_F(QuarantineTest, HostThatCrashesEvenWhenRefusedGivesWayToAClosedStandIn) {
  Start();
  EXPECT_EQ(Hello("host-a"), "welcome");
  for (int i = 0; i < 4; ++i) CrashOn("node", "host-a");
  EXPECT_THAT(Hello("host-a"), HasSubstr("quarantined"));

  std::shared_ptr<const Snapshot> snapshot = runtime_->snapshot();
  EXPECT_EQ(snapshot->nodes().at(NodeId("host-a"))->standing.service, NodeService::kCordoned);
  EXPECT_EQ(snapshot->nodes().at(NodeId("host-a"))->incarnation, 1);
  EXPECT_TRUE(Release("node host-a").ok());
  EXPECT_THAT(runtime_->ListQuarantine(), IsEmpty());
  EXPECT_EQ(Hello("host-a"), "welcome");
  EXPECT_TRUE(Ask(core::NodeUncordoned{.node = NodeId("host-a")}).status.ok());
  Stop();
  Start();
  EXPECT_THAT(runtime_->ListQuarantine(), IsEmpty());
}

TEST_F(QuarantineTest, SubmissionThatItsClientRepeatsIsRefused) {
  Start();
  CrashOn("submission", "default/key");
  CrashOn("submission", "default/key");
  core::JobSubmitted again;
  again.name = "train";
  again.project = "default";
  again.idempotency_key = "key";

  EXPECT_EQ(Ask(again).status.code(), absl::StatusCode::kFailedPrecondition);

  EXPECT_FALSE(Submit("other").empty());
}

TEST_F(QuarantineTest, WhatIsNotInQuarantineCannotBeReleased) {
  Start();

  EXPECT_EQ(Release("node host-a").code(), absl::StatusCode::kNotFound);
}

TEST_F(QuarantineTest, MarkerNamesWhatIsBeingWorkedOnAndIsEmptyInBetween) {
  Start();
  Submit();
  Stop();
  CrashMarker marker = *CrashMarker::Open(directory_ + "/working-on");
  EXPECT_FALSE(marker.left().has_value());
  marker.focus().Set(Focus::Stage::kStep, "job", std::string(1000, 'x'));

  ASSERT_TRUE(marker.left().has_value());
  EXPECT_EQ(marker.left()->entity.size(), Focus::kNameMax);
  marker.Forget();
  EXPECT_FALSE(marker.left().has_value());
}

}  // namespace
}  // namespace llmctl::runtime
