#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/coordinator_core/core_world.h"

namespace llmctl::core {
namespace {

JobSubmitted Submission(const std::string& key, const std::string& spec) {
  JobSubmitted event;
  event.request = 7;
  event.name = "demo";
  event.project = "default";
  event.spec = spec;
  event.requirements = CoreWorld::Needs(1);
  event.idempotency_key = key;
  return event;
}

TEST(Submission, IsPersistedBeforeItIsAnswered) {
  CoreWorld world;

  world.Do(Submission("k", "a"));

  std::vector<size_t> order;
  for (size_t i = 0; i < world.last.size(); ++i) {
    if (std::holds_alternative<PersistJob>(world.last[i])) order.push_back(i);
    if (std::holds_alternative<ReplyToUser>(world.last[i])) order.push_back(i);
  }
  ASSERT_EQ(order.size(), 2u);
  EXPECT_TRUE(std::holds_alternative<PersistJob>(world.last[order[0]]));
  EXPECT_EQ(world.Sent<ReplyToUser>().at(0).job, JobId("j-1"));
  EXPECT_EQ(world.Sent<RequestPlan>().size(), 1u);
  EXPECT_THAT(world.History(JobId("j-1")), testing::ElementsAre("submitted"));
}

TEST(Submission, SameKeyAndSpecGivesTheSameJobEvenAfterARestart) {
  CoreWorld world;
  world.Do(Submission("k", "a"));
  world.Restart();

  world.Do(Submission("k", "a"));

  ASSERT_TRUE(world.LastReply().ok());
  EXPECT_EQ(world.Sent<ReplyToUser>().at(0).job, JobId("j-1"));
  EXPECT_TRUE(world.Sent<ReplyToUser>().at(0).already_existed);
  EXPECT_EQ(world.state.jobs.size(), 1u);
}

TEST(Submission, SameKeyWithAnotherSpecIsRefused) {
  CoreWorld world;
  world.Do(Submission("k", "a"));

  world.Do(Submission("k", "b"));

  EXPECT_EQ(world.LastReply().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(world.LastReply().message()), testing::HasSubstr("j-1"));
  EXPECT_EQ(world.state.jobs.size(), 1u);
}

TEST(Submission, WithoutAKeyEachIsAJobOfItsOwn) {
  CoreWorld world;

  world.Do(Submission("", "a"));
  world.Do(Submission("", "a"));

  EXPECT_EQ(world.state.jobs.size(), 2u);
}

TEST(Deletion, OnlyEndedJobsAreForgottenAndTheirKeyIsFreeAgain) {
  CoreWorld world;
  world.Do(Submission("k", "a"));
  JobId id("j-1");

  world.Do(JobDeleted{1, id});
  EXPECT_EQ(world.LastReply().code(), absl::StatusCode::kFailedPrecondition);
  world.Do(JobCancelled{2, id, ""});
  world.Do(JobDeleted{3, id});

  EXPECT_TRUE(world.LastReply().ok());
  EXPECT_TRUE(world.state.jobs.empty());
  EXPECT_EQ(world.Sent<ForgetJob>().size(), 1u);
  world.Do(Submission("k", "b"));
  EXPECT_EQ(world.Sent<ReplyToUser>().at(0).job, JobId("j-2")) << "ids are never used twice";
}

TEST(Deletion, OfAnUnknownJobIsNotFound) {
  CoreWorld world;

  world.Do(JobDeleted{1, JobId("j-9")});

  EXPECT_EQ(world.LastReply().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace llmctl::core
