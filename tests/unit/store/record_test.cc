// Records keep every field of the model: Decode(Encode(x)) == x.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "coordinator/store/record_job.h"
#include "coordinator/store/record_node.h"

namespace llmctl::store {
namespace {

using ::testing::HasSubstr;

// A job with no field at its default, so that a forgotten one makes the comparison fail.
Job FullJob() {
  Job job;
  job.id = JobId("j-3");
  job.name = "train";
  job.project = "research";
  job.labels = {{"team", "a"}, {"größe", "ü"}};
  job.spec = std::string("\x00\xff\x80 bytes", 9);
  job.requirements = {2, 3, 4, 8, 64, 2, 70, 5, 6, absl::Hours(3), absl::Minutes(4), "/checkpoints", "/data", 9};
  job.idempotency_key = "key";
  job.phase = JobPhase::kStopping;
  job.reason = "a rank failed";
  const Diagnosis diagnosis{"nccl", FailureClass::kUnknown, Outlook::kOtherNode, true, 2, "memory", 0.5, "look"};
  job.failure = diagnosis;
  job.first_cause = "rank 0 on host-a was killed";
  job.retry_time = absl::FromUnixNanos(19);
  job.cancel_requested = true;
  job.cancel_reason = "no longer needed";
  job.time_limit_reached = true;
  job.suspend_requested = true;
  job.last_attempt = 7;
  job.last_generation = 11;
  job.user_restarts = 1;
  job.micro_batch_size = 1;
  job.limited_retries = {{"host-out-of-memory", 1}, {"mine", 2}};
  job.avoided_nodes = {NodeId("host-a")};
  job.accused_nodes = {NodeId("host-a"), NodeId("host-b")};
  job.infrastructure_failures = 3;
  job.backoff = absl::Milliseconds(1500);
  Attempt& attempt = job.attempt.emplace();
  attempt.number = 7;
  attempt.generation = 11;
  RankState rank;
  rank.node = NodeId("host-a");
  rank.device = 2;
  rank.phase = RankPhase::kExited;
  rank.pid = 4711;
  rank.exit = RankExit{41, 9, "user", "loss is NaN", true, true, "last\nwords", "NVRM: Xid", diagnosis};
  rank.exit_order = 1;
  attempt.ranks = {rank, RankState{}};
  attempt.ranks_requested = true;
  attempt.unreleased = {NodeId("host-a"), NodeId("host-b")};
  attempt.failure = GangFailure{diagnosis, "host lost", NodeId("host-a")};
  attempt.stop = StopRequest::kYield;
  attempt.stop_reason = "host-a is being drained";
  attempt.start_time = absl::FromUnixNanos(1700000000000000001);
  attempt.start_checkpoint_step = 300;
  job.past_attempts = {{6, 10, {NodeId("host-b"), NodeId("host-c")}}};
  job.checkpoints = {{100, 6, 10, "/checkpoints/a", "d1", 6400, absl::FromUnixNanos(17)}};
  job.run_time = absl::Nanoseconds(123456789);
  job.submit_time = absl::FromUnixNanos(1);
  job.start_time = absl::FromUnixNanos(2);
  job.end_time = absl::FromUnixNanos(3);
  job.last_event = 12;
  return job;
}

TEST(JobRecord, KeepsEveryField) {
  Job job = FullJob();

  absl::StatusOr<Job> decoded = DecodeJob(job.id, EncodeJob(job));

  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_TRUE(*decoded == job) << EncodeJob(*decoded) << "\n" << EncodeJob(job);
}

TEST(JobRecord, KeepsDefaultsAndInfiniteTimes) {
  Job job;
  job.id = JobId("j-1");

  absl::StatusOr<Job> decoded = DecodeJob(job.id, EncodeJob(job));

  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_TRUE(*decoded == job);
  EXPECT_EQ(decoded->requirements.time_limit, absl::InfiniteDuration());
  EXPECT_EQ(decoded->end_time, absl::InfinitePast());
}

TEST(JobRecord, BytesOfALogTailThatAreNotUtf8AreReplaced) {
  Job job = FullJob();
  job.attempt->ranks[0].exit->log_tail = "caf\xe9";

  absl::StatusOr<Job> decoded = DecodeJob(job.id, EncodeJob(job));

  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(decoded->attempt->ranks[0].exit->log_tail, "caf\xef\xbf\xbd");
}

TEST(JobRecord, OfBeforeTheFailureRulesIsStillRead) {
  absl::StatusOr<Job> decoded = DecodeJob(
      JobId("j-1"), R"({"version": 1, "failure_class": "config", "out_of_memory_restarts": 1,
                       "attempt": {"failure": {"class": "infrastructure", "text": "host lost"}}})");

  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(decoded->failure.failure_class, FailureClass::kUser);
  EXPECT_EQ(decoded->failure.outlook, Outlook::kNever);
  EXPECT_EQ(decoded->attempt->failure->diagnosis.failure_class, FailureClass::kInfrastructure);
  EXPECT_EQ(decoded->limited_retries.size(), 1u);
}

TEST(JobRecord, NewerVersionIsRefused) {
  absl::StatusOr<Job> decoded = DecodeJob(JobId("j-1"), R"({"version": 2})");

  EXPECT_EQ(decoded.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(decoded.status().message()), HasSubstr("a newer llm-coordinator wrote it"));
}

TEST(JobRecord, DamageNamesRecordFieldAndWhatWasFound) {
  absl::StatusOr<Job> wrong_type = DecodeJob(JobId("j-1"), R"({"version": 1, "last_attempt": "seven"})");
  absl::StatusOr<Job> no_json = DecodeJob(JobId("j-1"), "{\"version\": 1");

  EXPECT_THAT(std::string(wrong_type.status().message()),
              HasSubstr("job j-1: field 'last_attempt': expected an integer, found string"));
  EXPECT_EQ(no_json.status().code(), absl::StatusCode::kDataLoss);
}

TEST(NodeRecord, KeepsEveryField) {
  Node node;
  node.id = NodeId("host-a");
  node.boot_id = "b1";
  node.incarnation = 5;
  node.build_id = "build";
  node.trainer_digest = "digest";
  node.fabric_address = "10.0.0.1";
  node.devices = {{0, "cuda", "NVIDIA H200", "GPU-1", int64_t{150} << 30}};
  node.state = NodeState::kLost;
  node.standing.service = NodeService::kDraining;
  node.standing.service_reason = "new disks";
  node.standing.drain_deadline = absl::Minutes(7);
  node.standing.drain_overdue = true;
  node.standing.trust = NodeTrust::kBurnIn;
  node.standing.trust_time = absl::FromUnixNanos(1700000000000000003);
  node.standing.burn_in_wait = absl::Minutes(20);
  node.standing.quarantine_reason = "memory";
  node.standing.strike_score = 1.0 / 3;
  node.standing.strike_time = absl::FromUnixNanos(1700000000000000001);
  node.standing.strikes = {{absl::FromUnixNanos(5), 0.1, "silent", JobId("j-1")}};
  node.standing.quarantines = 2;
  node.standing.burn_in_passed = 3;
  node.standing.burn_in_failed = 4;
  node.standing.last_preflight = 5;
  node.standing.preflight_wanted = true;
  node.standing.preflight =
      PreflightReport{absl::FromUnixNanos(6), "b0", true, "none", {{"disk", "passed", 0.25, 1.0 / 7, "MB/s", "tmp"}}};

  absl::StatusOr<Node> decoded = DecodeNode(node.id, EncodeNode(node));

  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_TRUE(*decoded == node);
}

}  // namespace
}  // namespace llmctl::store
