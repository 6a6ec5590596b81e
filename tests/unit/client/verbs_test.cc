#include "client/command/verbs.h"

#include <filesystem>
#include <sstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/command/exit_code.h"
#include "client/command/spec_file.h"
#include "client/command/watching.h"
#include "common/base/file.h"
#include "tests/unit/client/fake_cluster.h"

namespace llmctl::client {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

class Verbs : public testing::Test {
 protected:
  FakeCluster cluster_;
  std::ostringstream out_, err_;
  Session session_{.cluster = cluster_, .out = out_, .err = err_};
};

TEST(ExitCodeOf, IsWhatTheHelpPromises) {
  EXPECT_EQ(ExitCodeOf(absl::OkStatus()), ExitCode{0});
  EXPECT_EQ(ExitCodeOf(MakeJob("j", v1::JOB_PHASE_FAILED)), ExitCode{1});
  EXPECT_EQ(ExitCodeOf(absl::InvalidArgumentError("")), ExitCode{2});
  EXPECT_EQ(ExitCodeOf(absl::NotFoundError("")), ExitCode{3});
  EXPECT_EQ(ExitCodeOf(absl::UnavailableError("")), ExitCode{4});
  EXPECT_EQ(ExitCodeOf(absl::DeadlineExceededError("")), ExitCode{4});
  EXPECT_EQ(ExitCodeOf(MakeJob("j", v1::JOB_PHASE_CANCELLED)), ExitCode{5});
  EXPECT_EQ(ExitCodeOf(absl::AlreadyExistsError("")), ExitCode{6});
  EXPECT_EQ(ExitCodeOf(absl::FailedPreconditionError("")), ExitCode{6});
  EXPECT_EQ(ExitCodeOf(absl::InternalError("")), ExitCode{7});
}

TEST(Explain, SaysWhatToDoWhenNobodyAnswers) {
  EXPECT_THAT(Explain(absl::UnavailableError("refused")), HasSubstr("llmctl local up"));
  EXPECT_EQ(Explain(absl::NotFoundError("no job x")), "no job x");
}

TEST_F(Verbs, SubmitSendsAbsolutePathsAndAKey) {
  cluster_.job = MakeJob("j-1", v1::JOB_PHASE_QUEUED);

  ASSERT_EQ(*Submit({.file = "examples/quickstart.yaml", .name = "other"}, session_), ExitCode::kOk);
  ASSERT_EQ(*Submit({.file = "examples/quickstart.yaml"}, session_), ExitCode::kOk);

  const v1::SubmitRequest& first = cluster_.submitted[0];
  std::string here = std::filesystem::current_path().string();
  EXPECT_EQ(first.spec().data().dataset(), here + "/.llmctl/quickstart/data");
  EXPECT_EQ(first.spec().checkpoint().directory(), here + "/.llmctl/quickstart/checkpoints");
  EXPECT_EQ(first.spec().metadata().name(), "other");
  EXPECT_NE(first.idempotency_key(), "");
  EXPECT_NE(first.idempotency_key(), cluster_.submitted[1].idempotency_key());
  EXPECT_THAT(out_.str(), StartsWith("submitted j-1 quickstart\n"));
}

TEST_F(Verbs, ASubmissionThatMayHaveBeenTakenNamesItsKey) {
  cluster_.error = absl::ResourceExhaustedError("the coordinator cannot write its store");

  absl::Status unknown = Submit({.file = "examples/quickstart.yaml"}, session_).status();

  EXPECT_EQ(unknown.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(unknown.message()),
              HasSubstr(absl::StrCat("--idempotency-key=", cluster_.submitted[0].idempotency_key())));
  cluster_.error = absl::AlreadyExistsError("another job has this key");
  EXPECT_EQ(Submit({.file = "examples/quickstart.yaml"}, session_).status(), cluster_.error);
}

TEST_F(Verbs, SubmitSendsNothingWhenTheFileIsBad) {
  std::string path = testing::TempDir() + "/bad.yaml";
  ASSERT_EQ(WriteFileAtomically(path, "kind: 5\n"), absl::OkStatus());

  EXPECT_EQ(*Submit({.file = path}, session_), ExitCode::kUsage);

  EXPECT_TRUE(cluster_.submitted.empty());
  EXPECT_THAT(err_.str(), HasSubstr(path + ":1:7: kind: found 5, expected TrainingJob"));
}

TEST_F(Verbs, SubmitRefusesABadNameBeforeTheCoordinatorDoes) {
  absl::StatusOr<ExitCode> code = Submit({.file = "examples/quickstart.yaml", .name = "No Good"}, session_);

  EXPECT_EQ(code.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(code.status().message()), HasSubstr("metadata.name"));
}

TEST_F(Verbs, FollowGoesOnAfterALostConnectionFromTheRevisionItSaw) {
  v1::Job running = MakeJob("j-1", v1::JOB_PHASE_RUNNING, 10);
  running.set_revision(41);
  v1::Job done = MakeJob("j-1", v1::JOB_PHASE_SUCCEEDED, 600);
  done.mutable_checkpoint()->set_step(600);
  done.mutable_checkpoint()->set_path("/c/step-600");
  cluster_.streams = {{{running}, absl::UnavailableError("gone")},
                      {{}, absl::UnavailableError("still gone")},
                      {{}, absl::OutOfRangeError("too old")},
                      {{done}, absl::OkStatus()}};

  EXPECT_EQ(*Follow("quickstart", session_), ExitCode::kOk);

  std::vector<int64_t> revisions;
  for (const v1::WatchJobRequest& request : cluster_.watched) revisions.push_back(request.after_revision());
  EXPECT_THAT(revisions, ElementsAre(0, 41, 41, 0));
  EXPECT_EQ(cluster_.watched[0].id(), "quickstart");
  EXPECT_EQ(cluster_.watched[1].id(), "j-1") << "a newer job may take the name";
  EXPECT_THAT(out_.str(), HasSubstr("the coordinator is away"));
  EXPECT_THAT(out_.str(), HasSubstr("checkpoint of step 600: /c/step-600"));
}

TEST_F(Verbs, FollowEndsAsTheJobDid) {
  v1::Job failed = MakeJob("j-1", v1::JOB_PHASE_FAILED, 10);
  failed.set_reason("loss is NaN");
  cluster_.streams = {{{failed}, absl::OkStatus()}};

  EXPECT_EQ(*Follow("j-1", session_), ExitCode::kJobFailed);

  EXPECT_THAT(out_.str(), HasSubstr("why: loss is NaN"));
}

TEST_F(Verbs, FollowOfAnUnknownJobIsAnError) {
  cluster_.streams = {{{}, absl::NotFoundError("no job x")}};

  EXPECT_EQ(Follow("x", session_).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(Verbs, WaitGivesUpAfterItsTimeout) {
  cluster_.streams = {{{MakeJob("j-1", v1::JOB_PHASE_RUNNING)}, absl::UnavailableError("")}};

  EXPECT_EQ(*Wait("j-1", absl::Milliseconds(1), session_), ExitCode::kOther);

  EXPECT_THAT(err_.str(), HasSubstr("job j-1 is running"));
}

TEST_F(Verbs, WaitTellsCancelledFromFailed) {
  cluster_.streams = {{{MakeJob("j-1", v1::JOB_PHASE_CANCELLED)}, absl::OkStatus()}};

  EXPECT_EQ(*Wait("j-1", absl::InfiniteDuration(), session_), ExitCode::kJobCancelled);
}

TEST_F(Verbs, ListAsksForWhatWasMeant) {
  *cluster_.jobs.add_jobs() = MakeJob("j-2", v1::JOB_PHASE_RUNNING, 5);

  ASSERT_EQ(*List({.project = "p", .phases = {"running", "queued"}, .labels = {"team=a=b"}}, session_), ExitCode::kOk);

  const v1::ListJobsRequest& request = cluster_.listed[0];
  EXPECT_EQ(request.project(), "p");
  EXPECT_THAT(request.phases(), ElementsAre(v1::JOB_PHASE_RUNNING, v1::JOB_PHASE_QUEUED));
  EXPECT_EQ(request.labels().at("team"), "a=b");
  EXPECT_THAT(out_.str(), StartsWith("ID   NAME        PROJECT  PHASE    ATTEMPT  STEP   LOSS"));
}

TEST_F(Verbs, ListRefusesPhasesAndLabelsThatCannotBe) {
  EXPECT_THAT(std::string(List({.phases = {"runing"}}, session_).status().message()),
              HasSubstr("found \"runing\", expected one of queued, starting, running"));
  EXPECT_THAT(std::string(List({.labels = {"team"}}, session_).status().message()), HasSubstr("expected name=value"));
}

TEST_F(Verbs, LogsPrintsAllPieces) {
  cluster_.log_pieces = {"one\n", "two\n"};

  EXPECT_EQ(*Logs({.job = "j-1"}, session_), ExitCode::kOk);

  EXPECT_EQ(out_.str(), "one\ntwo\n");
}

TEST_F(Verbs, JsonIsTheJobItself) {
  cluster_.job = MakeJob("j-1", v1::JOB_PHASE_QUEUED);
  session_.format = Format::kJson;

  ASSERT_EQ(*Submit({.file = "examples/quickstart.yaml"}, session_), ExitCode::kOk);

  EXPECT_THAT(out_.str(), StartsWith("{\n  \"id\": \"j-1\",\n  \"name\": \"quickstart\",\n"));
}

TEST_F(Verbs, GenerateWantsACheckpoint) {
  cluster_.job = MakeJob("j-1", v1::JOB_PHASE_RUNNING);

  EXPECT_EQ(Generate({.job = "j-1"}, session_).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST(MakePathsAbsolute, LeavesAbsoluteAndAbsentOnesAlone) {
  v1::JobSpec spec;
  spec.mutable_data()->set_dataset("/data");
  spec.mutable_checkpoint()->set_directory("../out/./x");

  MakePathsAbsolute("/srv/u", spec);

  EXPECT_EQ(spec.data().dataset(), "/data");
  EXPECT_EQ(spec.checkpoint().directory(), "/srv/out/x");
  EXPECT_EQ(spec.init_from(), "");
}

TEST_F(Verbs, NodesAndVersionSayWhoRunsAnotherBuild) {
  for (const char* name : {"host-a", "host-b"}) {
    v1::Node* node = cluster_.nodes.add_nodes();
    node->set_id(name);
    node->set_build_id("0.1.0+old");
  }
  cluster_.version.set_build_id("0.1.0+new");

  ASSERT_EQ(*ListNodes(session_), ExitCode::kOk);
  EXPECT_THAT(out_.str(), HasSubstr("skew: 2 builds: 0.1.0+new on coordinator; 0.1.0+old on host-a, host-b\n"));
  ASSERT_EQ(*Version(session_), ExitCode::kOk);
  EXPECT_THAT(out_.str(), HasSubstr("skew: 3 builds"));
  cluster_.version.set_build_id("0.1.0+old");
  out_.str("");
  ASSERT_EQ(*ListNodes(session_), ExitCode::kOk);
  EXPECT_EQ(out_.str().find("skew"), std::string::npos);
}

TEST_F(Verbs, VersionNeedsNoCoordinator) {
  cluster_.error = absl::UnavailableError("refused");

  EXPECT_EQ(*Version(session_), ExitCode::kOk);

  EXPECT_THAT(out_.str(), StartsWith("llmctl 0."));
  EXPECT_THAT(err_.str(), HasSubstr("refused"));
}

TEST_F(Verbs, BackupIsWrittenWholeOrNotAtAll) {
  std::string folder = testing::TempDir() + "/backups";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  cluster_.backup_pieces = {"one", "two"};

  ASSERT_EQ(*AdminBackup(folder + "/store.backup", session_), ExitCode::kOk);
  ASSERT_EQ(*AdminBackup(folder, session_), ExitCode::kOk);
  cluster_.error = absl::UnavailableError("gone");
  EXPECT_FALSE(AdminBackup(folder + "/broken.backup", session_).ok());

  EXPECT_EQ(*ReadFile(folder + "/store.backup"), "onetwo");
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) names.push_back(entry.path().filename());
  EXPECT_THAT(names, testing::UnorderedElementsAre("store.backup", StartsWith("llmctl-")));
}

TEST_F(Verbs, QuarantineIsListedAndReleased) {
  ASSERT_EQ(*AdminQuarantine(session_), ExitCode::kOk);
  EXPECT_THAT(out_.str(), HasSubstr("nothing is in quarantine"));
  v1::Quarantined* entity = cluster_.quarantine.add_entities();
  entity->set_entity("job j-17");
  entity->set_crashes(2);
  entity->set_reason("handling it has crashed the coordinator 2 times");

  ASSERT_EQ(*AdminQuarantine(session_), ExitCode::kOk);
  ASSERT_EQ(*AdminRelease("job j-17", session_), ExitCode::kOk);

  EXPECT_THAT(out_.str(), HasSubstr("job j-17  2        -     handling it has crashed"));
  EXPECT_THAT(cluster_.released, ElementsAre("job j-17"));
}

}  // namespace
}  // namespace llmctl::client
