// A newer coordinator takes over the store of an older one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "coordinator/store/record_job.h"
#include "coordinator/store/record_node.h"
#include "tests/compatibility/recorded.h"

namespace llmctl::store {
namespace {

TEST(RecordCompatibility, JobOfVersionOneIsRead) {
  absl::StatusOr<Job> job = DecodeJob(JobId("j-3"), ReadRecorded("job_record_v1.json"));

  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->phase, JobPhase::kRunning);
  EXPECT_EQ(job->failure.failure_class, FailureClass::kInfrastructure);
  EXPECT_EQ(job->last_generation, 11);
  EXPECT_EQ(job->spec, std::string("\0\xff\x80 bytes", 9));
  EXPECT_EQ(job->requirements.time_limit, absl::Hours(3));
  ASSERT_TRUE(job->attempt.has_value());
  ASSERT_EQ(job->attempt->ranks.size(), 2u);
  EXPECT_EQ(job->attempt->ranks[1].exit->fatal_message, "loss is NaN");
  EXPECT_EQ(job->attempt->failure->text, "host lost");
  EXPECT_EQ(job->checkpoints.at(0).next_sample, 6400);
  // What that version did not have stands at what it meant.
  EXPECT_EQ(job->generation_floor, 0);
  EXPECT_EQ(job->attempt->trainer_digest, "");
}

TEST(RecordCompatibility, NodeOfVersionOneIsRead) {
  absl::StatusOr<Node> node = DecodeNode(NodeId("host-a"), ReadRecorded("node_record_v1.json"));

  ASSERT_TRUE(node.ok()) << node.status();
  EXPECT_EQ(node->incarnation, 4);
  EXPECT_EQ(node->devices.at(0).uuid, "GPU-1");
  EXPECT_TRUE(node->capabilities.empty());
}

TEST(RecordCompatibility, RecordOfANewerVersionIsNotCalledDamaged) {
  std::string record = ReadRecorded("job_record_v1.json");
  record.replace(record.find("\"version\":1"), 11, "\"version\":9");

  absl::Status status = DecodeJob(JobId("j-3"), record).status();

  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_THAT(std::string(status.message()),
              testing::AllOf(testing::HasSubstr("version 9"), testing::HasSubstr("newer llm-coordinator")));
}

}  // namespace
}  // namespace llmctl::store
