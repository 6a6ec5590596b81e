#include "coordinator/runtime/commit_pipeline.h"

#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace llmctl::runtime {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

store::Change Put(const std::string& id, JobPhase phase = JobPhase::kQueued) {
  auto job = std::make_shared<Job>();
  job->id = JobId(id);
  job->phase = phase;
  return store::PutJob{job};
}

StepOutput Step(int64_t number, std::vector<store::Change> changes = {}) {
  StepOutput step;
  step.revision = number;
  step.changes = std::move(changes);
  step.outbox.push_back(core::ReplyToUser{.request = number});
  return step;
}

std::vector<int64_t> Released(CommitPipeline& pipeline) {
  std::vector<int64_t> numbers;
  for (const StepOutput& step : pipeline.TakeDurable()) numbers.push_back(step.revision);
  return numbers;
}

TEST(CommitPipeline, StepLeavesOnlyWhenItsBatchIsDurable) {
  CommitPipeline pipeline;
  pipeline.Add(Step(1, {Put("j-1")}));

  EXPECT_THAT(Released(pipeline), IsEmpty());
  ASSERT_NE(pipeline.Begin(), nullptr);
  EXPECT_THAT(Released(pipeline), IsEmpty());
  pipeline.Succeeded();

  EXPECT_THAT(Released(pipeline), ElementsAre(1));
  EXPECT_TRUE(pipeline.empty());
}

TEST(CommitPipeline, WhoWantsToKnowIsToldWhenAllBeforeItIsDurable) {
  CommitPipeline pipeline;
  pipeline.Add(Step(1, {Put("j-1")}));
  pipeline.Begin();
  int told = 0;
  pipeline.Acknowledge(/*link=*/1, [&] { told = 1; }, 1);
  pipeline.Add(Step(2, {Put("j-2")}));
  pipeline.Acknowledge(/*link=*/1, [&] { told = 2; }, 2);
  auto tell = [&] {
    for (const StepOutput& step : pipeline.TakeDurable()) {
      for (const auto& [link, give] : step.acknowledge) give();
    }
  };

  tell();
  EXPECT_EQ(told, 0);
  pipeline.Succeeded();
  tell();
  EXPECT_EQ(told, 1) << "the second waits for what is not even being written";
  pipeline.Begin();
  tell();
  EXPECT_EQ(told, 1);
  pipeline.Succeeded();
  tell();
  EXPECT_EQ(told, 2);
}

// A night of a full disk: what hosts say meanwhile must not cost memory by the heartbeat.
TEST(CommitPipeline, HeartbeatsDoNotPileUpWhileTheDiskFails) {
  CommitPipeline pipeline;
  pipeline.Add(Step(1, {Put("j-1")}));
  std::map<int64_t, int> told;
  for (int beat = 1; beat <= 1000; ++beat) {
    if (beat % 2 == 0) pipeline.Begin();
    for (int64_t link = 1; link <= 3; ++link) {
      pipeline.Acknowledge(link, [&told, link, beat] { told[link] = beat; }, 1);
    }
    if (beat % 2 == 0) pipeline.Failed();
  }

  EXPECT_EQ(pipeline.size(), 1u);
  ASSERT_NE(pipeline.Begin(), nullptr);
  pipeline.Succeeded();
  for (const StepOutput& step : pipeline.TakeDurable()) {
    for (const auto& [link, give] : step.acknowledge) give();
  }
  EXPECT_EQ(told, (std::map<int64_t, int>{{1, 1000}, {2, 1000}, {3, 1000}}));
}

TEST(CommitPipeline, StepsOfTheNextBatchGatherWhileOneIsInFlight) {
  CommitPipeline pipeline;
  pipeline.Add(Step(1, {Put("j-1")}));
  pipeline.Begin();
  pipeline.Add(Step(2, {Put("j-2")}));
  pipeline.Add(Step(3, {Put("j-3")}));

  EXPECT_EQ(pipeline.Begin(), nullptr);
  pipeline.Succeeded();
  EXPECT_THAT(Released(pipeline), ElementsAre(1));
  EXPECT_EQ(pipeline.Begin()->size(), 2u);
  pipeline.Succeeded();

  EXPECT_THAT(Released(pipeline), ElementsAre(2, 3));
}

TEST(CommitPipeline, StepWithoutChangesWaitsForThoseBeforeItAndNoLonger) {
  CommitPipeline pipeline;
  pipeline.Add(Step(1));
  EXPECT_THAT(Released(pipeline), ElementsAre(1));

  pipeline.Add(Step(2, {Put("j-2")}));
  pipeline.Add(Step(3));
  EXPECT_THAT(Released(pipeline), IsEmpty());
  pipeline.Begin();
  pipeline.Add(Step(4));
  EXPECT_THAT(Released(pipeline), IsEmpty());
  pipeline.Succeeded();

  EXPECT_THAT(Released(pipeline), ElementsAre(2, 3, 4));
}

TEST(CommitPipeline, FailedBatchIsTakenAgainTogetherWithWhatCameSince) {
  CommitPipeline pipeline;
  pipeline.Add(Step(1, {Put("j-1", JobPhase::kQueued)}));
  pipeline.Begin();
  pipeline.Add(Step(2, {Put("j-1", JobPhase::kRunning), Put("j-2")}));

  pipeline.Failed();

  EXPECT_THAT(Released(pipeline), IsEmpty());
  auto batch = pipeline.Begin();
  ASSERT_EQ(batch->size(), 2u);
  EXPECT_EQ(std::get<store::PutJob>((*batch)[0]).job->phase, JobPhase::kRunning);
  pipeline.Succeeded();
  EXPECT_THAT(Released(pipeline), ElementsAre(1, 2));
}

TEST(CommitPipeline, OnlyTheLastOfSeveralChangesToARecordIsWritten) {
  store::AppendEvent first{JobId("j-1"), {.sequence = 1}};
  store::AppendEvent second{JobId("j-1"), {.sequence = 2}};

  std::vector<store::Change> kept =
      DropReplaced({Put("j-1"), first, store::PutCounters{{2, 1}}, Put("j-1", JobPhase::kRunning), second,
                    store::PutCounters{{2, 2}}, Put("j-2"), store::EraseJob{JobId("j-2")}});

  ASSERT_EQ(kept.size(), 5u);
  EXPECT_EQ(std::get<store::AppendEvent>(kept[0]).event.sequence, 1);
  EXPECT_EQ(std::get<store::PutJob>(kept[1]).job->phase, JobPhase::kRunning);
  EXPECT_EQ(std::get<store::AppendEvent>(kept[2]).event.sequence, 2);
  EXPECT_EQ(std::get<store::PutCounters>(kept[3]).counters.revision, 2);
  EXPECT_EQ(std::get<store::EraseJob>(kept[4]).job, JobId("j-2"));
}

TEST(CommitPipeline, StepsThatAreNotDurableCanBeLookedAt) {
  CommitPipeline pipeline;
  pipeline.Add({.changes = {store::PutCounters{{1, 1}}}, .revision = 1});
  pipeline.Begin();
  pipeline.Succeeded();
  pipeline.Add({.changes = {store::PutCounters{{1, 2}}}, .revision = 2});
  pipeline.Begin();
  pipeline.Add({.revision = 3});
  std::vector<int64_t> waiting;

  pipeline.VisitWaiting([&](const StepOutput& step) { waiting.push_back(step.revision); });

  EXPECT_EQ(waiting, (std::vector<int64_t>{2, 3}));
}

// Nothing waits for the next commit that the last one has made durable.
TEST(CommitPipeline, StepThatWroteNothingLeavesWithTheOneBeforeItThoughTheNextCommitHasBegun) {
  CommitPipeline pipeline;
  pipeline.Add({.changes = {store::PutCounters{{1, 1}}}, .revision = 1});
  pipeline.Begin();
  pipeline.Add({.revision = 2});
  pipeline.Add({.changes = {store::PutCounters{{1, 3}}}, .revision = 3});

  pipeline.Succeeded();
  pipeline.Begin();

  EXPECT_EQ(pipeline.TakeDurable().size(), 2u);
}

}  // namespace
}  // namespace llmctl::runtime
