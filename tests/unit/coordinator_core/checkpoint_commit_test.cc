#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/coordinator_core/core_world.h"

namespace llmctl::core {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class CheckpointCommit : public testing::Test {
 protected:
  CheckpointCommit() {
    world.Connect("node-a");
    id = world.Submit();
    world.Run(id);
  }
  AnswerCheckpoint Answer() { return world.Sent<AnswerCheckpoint>().at(0); }

  CoreWorld world;
  JobId id;
};

TEST_F(CheckpointCommit, IsPersistedBeforeItIsAnswered) {
  world.Commit(id, 10);

  EXPECT_TRUE(Answer().committed);
  ASSERT_THAT(world.job(id).checkpoints, SizeIs(1));
  EXPECT_EQ(world.job(id).checkpoints[0].generation, 1);
  EXPECT_TRUE(std::holds_alternative<AnswerCheckpoint>(world.last.back()));
}

TEST_F(CheckpointCommit, KeepsTheLastAndNamesWhatMayBeRemoved) {
  world.Commit(id, 10);
  world.Commit(id, 20);
  world.Commit(id, 30);

  EXPECT_THAT(Answer().removable_paths, ElementsAre("/ckpt/step-10"));
  EXPECT_THAT(world.job(id).checkpoints, SizeIs(2));
}

TEST_F(CheckpointCommit, RepeatedOfferIsAnsweredLikeTheFirst) {
  world.Commit(id, 10);

  world.Commit(id, 10);

  EXPECT_TRUE(Answer().committed);
  EXPECT_THAT(world.Sent<PersistJob>(), IsEmpty());
  EXPECT_THAT(world.job(id).checkpoints, SizeIs(1));
}

// The agent keeps an offer on disk until it is answered; the answer may have gone with the coordinator.
TEST_F(CheckpointCommit, RepeatedOfferIsAnsweredLikeTheFirstAfterARestart) {
  world.Commit(id, 10);
  world.Commit(id, 20);
  world.Commit(id, 30);

  world.Restart();
  world.Reconnect("node-a", world.ShimsOf("node-a"));
  world.Commit(id, 30);

  EXPECT_TRUE(Answer().committed) << Answer().error;
  EXPECT_THAT(Answer().removable_paths, IsEmpty()) << "they were named when the records were dropped";
  EXPECT_THAT(world.Sent<PersistJob>(), IsEmpty());
  EXPECT_THAT(world.job(id).checkpoints, SizeIs(2));
}

TEST_F(CheckpointCommit, NeverGoesBack) {
  world.Commit(id, 20);

  world.Commit(id, 10);

  EXPECT_FALSE(Answer().committed);
  EXPECT_THAT(Answer().error, HasSubstr("step 10 is not after the committed step 20"));
}

TEST_F(CheckpointCommit, OfAFencedGenerationIsRefused) {
  GenerationId old = world.generation(id);
  world.FailOnce(id, KilledBy(9));
  world.Run(id);
  CheckpointRecord late;
  late.step = 99;

  world.Do(CheckpointOffered{NodeId("node-a"), old, 1, late});

  EXPECT_FALSE(Answer().committed);
  EXPECT_THAT(Answer().error, HasSubstr("is over"));
  EXPECT_THAT(world.job(id).checkpoints, IsEmpty());
}

TEST_F(CheckpointCommit, SameStepOfANewerGenerationIsCommitted) {
  world.Commit(id, 10);
  world.FailOnce(id, KilledBy(9));
  world.Run(id);

  world.Commit(id, 10);

  EXPECT_TRUE(Answer().committed);
  EXPECT_EQ(world.job(id).checkpoints.back().generation, 2);
}

TEST_F(CheckpointCommit, ThatWaitedForTheCoordinatorIsTakenFromTheNewestGenerationEvenIfItEnded) {
  world.FailOnce(id, KilledBy(9));
  ASSERT_EQ(world.job(id).phase, JobPhase::kQueued);

  world.Commit(id, 10);

  EXPECT_TRUE(Answer().committed);
  EXPECT_EQ(world.job(id).infrastructure_failures, 0);
}

TEST_F(CheckpointCommit, WithSamplesThatGoBackIsRefused) {
  world.Commit(id, 10);
  CheckpointRecord offer;
  offer.step = 20;
  offer.next_sample = 7;

  world.Do(CheckpointOffered{NodeId("node-a"), world.generation(id), 1, offer});

  EXPECT_FALSE(Answer().committed);
  EXPECT_THAT(Answer().error, HasSubstr("samples do not continue"));
}

TEST_F(CheckpointCommit, OfAnEndedOrUnknownJobIsRefused) {
  world.ExitAll(id, ExitCode(0));
  world.Commit(id, 10);
  EXPECT_FALSE(Answer().committed);

  world.Do(CheckpointOffered{NodeId("node-a"), {JobId("j-9"), 1, 1}, 1, {}});
  EXPECT_FALSE(Answer().committed);
}

}  // namespace
}  // namespace llmctl::core
