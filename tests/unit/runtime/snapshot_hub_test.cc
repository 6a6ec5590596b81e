#include "coordinator/runtime/snapshot_hub.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/rng.h"

namespace llmctl::runtime {
namespace {

using ::testing::ElementsAre;

StepOutput Put(int64_t revision, const std::string& id, const std::string& name = "train") {
  auto job = std::make_shared<Job>();
  job->id = JobId(id);
  job->name = name;
  StepOutput step;
  step.revision = revision;
  step.changes.push_back(store::PutJob{job});
  return step;
}

StepOutput Erase(int64_t revision, const std::string& id) {
  StepOutput step;
  step.revision = revision;
  step.changes.push_back(store::EraseJob{JobId(id)});
  return step;
}

StepOutput LeftOut(int64_t revision, const std::string& id, const std::string& reason) {
  StepOutput step;
  step.revision = revision;
  step.left_out.push_back({JobId(id), reason});
  return step;
}

std::vector<std::string> NewestFirst(const Snapshot& snapshot, int64_t before) {
  std::vector<std::string> ids;
  snapshot.VisitNewestFirst(before, [&](const JobView& view) {
    ids.push_back(view.job->id.value());
    return true;
  });
  return ids;
}

TEST(Snapshot, ReaderKeepsThePictureItTook) {
  SnapshotHub hub(core::State{}, 100);
  hub.Publish({Put(1, "j-1")});
  std::shared_ptr<const Snapshot> taken = hub.Get();

  hub.Publish({Erase(2, "j-1"), Put(3, "j-2")});

  EXPECT_EQ(taken->revision(), 1);
  EXPECT_NE(taken->FindJob(JobId("j-1")), nullptr);
  EXPECT_EQ(taken->FindJob(JobId("j-2")), nullptr);
  EXPECT_EQ(hub.Get()->FindJob(JobId("j-1")), nullptr);
  EXPECT_EQ(hub.Get()->FindJob(JobId("j-2"))->revision, 3);
}

TEST(Snapshot, JobsAreVisitedInOrderOfSubmissionAcrossChunks) {
  SnapshotHub hub(core::State{}, 1000);
  for (int64_t i = 1; i <= 200; ++i) hub.Publish({Put(i, "j-" + std::to_string(i), i <= 100 ? "old" : "new")});

  std::vector<std::string> all = NewestFirst(*hub.Get(), 0);

  ASSERT_EQ(all.size(), 200u);
  EXPECT_EQ(all.front(), "j-200");
  EXPECT_EQ(all.back(), "j-1");
  for (int64_t before : {1, 2, 63, 64, 65, 128, 200}) {
    EXPECT_EQ(NewestFirst(*hub.Get(), before).size(), static_cast<size_t>(before - 1)) << before;
  }
  EXPECT_EQ(hub.Get()->FindNewestNamed("old")->job->id, JobId("j-100"));
  EXPECT_EQ(hub.Get()->FindNewestNamed("none"), nullptr);
}

// Random changes, each snapshot kept: every one must go on showing exactly what was there when it was taken.
TEST(Snapshot, EverySnapshotKeepsItsPictureWhileOthersChange) {
  SnapshotHub hub(core::State{}, 10);
  SeededRng rng(1);
  std::map<int64_t, int64_t> jobs;  // number -> revision
  std::vector<std::pair<std::shared_ptr<const Snapshot>, std::map<int64_t, int64_t>>> taken;
  int64_t revision = 0;

  for (int round = 0; round < 200; ++round) {
    std::vector<StepOutput> steps;
    for (int i = 0; i < 20; ++i) {
      // Around the ends of chunks and pages, so that both come to be empty and are made anew.
      auto number = static_cast<int64_t>(4096 * (1 + rng.Below(3)) + rng.Below(70)) - 3;
      ++revision;
      if (rng.Below(2) == 0) {
        steps.push_back(Put(revision, "j-" + std::to_string(number)));
        jobs[number] = revision;
      } else {
        steps.push_back(Erase(revision, "j-" + std::to_string(number)));
        jobs.erase(number);
      }
    }
    hub.Publish(steps);
    taken.emplace_back(hub.Get(), jobs);
  }

  for (const auto& [snapshot, expected] : taken) {
    std::map<int64_t, int64_t> found;
    snapshot->VisitNewestFirst(0, [&](const JobView& view) {
      found[JobNumber(view.job->id)] = view.revision;
      return true;
    });
    EXPECT_EQ(found, expected) << "at revision " << snapshot->revision();
    for (const auto& [number, at] : expected) {
      EXPECT_EQ(snapshot->FindJob(JobId("j-" + std::to_string(number)))->revision, at);
    }
  }
}

TEST(SnapshotHub, WatchResumesAfterARevisionWithoutMissingAChange) {
  SnapshotHub hub(core::State{}, 100);
  hub.Publish({Put(1, "j-1", "a"), Put(2, "j-2"), Put(3, "j-1", "b"), Put(4, "j-1", "c")});

  std::vector<std::string> names;
  int64_t seen = 1;
  while (auto change = *hub.NextChange(JobId("j-1"), seen)) {
    names.push_back(change->job->name);
    seen = change->revision;
  }

  EXPECT_THAT(names, ElementsAre("b", "c"));
}

TEST(SnapshotHub, RevisionWhoseChangesAreForgottenIsTooOld) {
  SnapshotHub hub(core::State{}, 2);
  hub.Publish({Put(1, "j-1"), Put(2, "j-1"), Put(3, "j-1"), Put(4, "j-1")});

  EXPECT_EQ(hub.NextChange(JobId("j-1"), 1).status().code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ((*hub.NextChange(JobId("j-1"), 2))->revision, 3);
}

TEST(SnapshotHub, ManyChangesOfOthersDoNotMakeAnIdleWatchTooOld) {
  SnapshotHub hub(core::State{}, 2);
  hub.Publish({Put(1, "j-1"), Put(2, "j-2"), Put(3, "j-2"), Put(4, "j-2"), Put(5, "j-2")});

  EXPECT_FALSE(hub.NextChange(JobId("j-1"), 1)->has_value());
  hub.Publish({Put(6, "j-1")});
  EXPECT_EQ((*hub.NextChange(JobId("j-1"), 1))->revision, 6);
}

TEST(SnapshotHub, RevisionOfTheFutureIsRefused) {
  SnapshotHub hub(core::State{}, 2);
  hub.Publish({Put(1, "j-1")});

  EXPECT_EQ(hub.NextChange(JobId("j-1"), 2).status().code(), absl::StatusCode::kOutOfRange);
}

TEST(SnapshotHub, DeletionIsAChange) {
  SnapshotHub hub(core::State{}, 10);
  hub.Publish({Put(1, "j-1"), Erase(2, "j-1")});

  auto change = *hub.NextChange(JobId("j-1"), 1);

  ASSERT_TRUE(change.has_value());
  EXPECT_EQ(change->job, nullptr);
}

TEST(SnapshotHub, SubscriberHearsOfItsJobOnlyAndUntilItUnsubscribes) {
  SnapshotHub hub(core::State{}, 10);
  int heard = 0;
  int64_t subscription = hub.Subscribe(JobId("j-1"), [&] { ++heard; });

  hub.Publish({Put(1, "j-1")});
  hub.Publish({Put(2, "j-2")});
  hub.Touch(JobId("j-1"));
  hub.Publish({LeftOut(2, "j-1", "no free device")});
  hub.Publish({LeftOut(2, "j-1", "no free device")});
  EXPECT_EQ(heard, 3);
  hub.Unsubscribe(JobId("j-1"), subscription);
  hub.Publish({Put(3, "j-1")});

  EXPECT_EQ(heard, 3);
}

TEST(SnapshotHub, ReasonToWaitIsShownWhileTheJobIsQueued) {
  SnapshotHub hub(core::State{}, 10);
  hub.Publish({LeftOut(0, "j-1", "of a job that nobody knows")});
  EXPECT_EQ(hub.Get()->FindJob(JobId("j-1")), nullptr);

  hub.Publish({Put(1, "j-1"), LeftOut(1, "j-1", "no free device")});
  std::shared_ptr<const Snapshot> queued = hub.Get();
  auto job = std::make_shared<Job>(*queued->FindJob(JobId("j-1"))->job);
  job->phase = JobPhase::kStarting;
  StepOutput placed{.revision = 2};
  placed.changes.push_back(store::PutJob{job});
  hub.Publish({std::move(placed), LeftOut(2, "j-1", "of a plan that came too late")});

  EXPECT_EQ(*queued->FindJob(JobId("j-1"))->waiting, "no free device");
  EXPECT_EQ(queued->FindJob(JobId("j-1"))->revision, 1);
  EXPECT_EQ(hub.Get()->FindJob(JobId("j-1"))->waiting, nullptr);
}

TEST(SnapshotHub, WaitForARevisionEndsWhenItIsPublishedOrTheTimeIsOver) {
  SnapshotHub hub(core::State(), 10);
  std::vector<std::string> ended;
  hub.AwaitRevision(0, absl::Seconds(1), [&] { ended.push_back("is there"); });
  hub.AwaitRevision(2, absl::Seconds(1), [&] { ended.push_back("is published"); });
  hub.AwaitRevision(9, absl::Seconds(1), [&] { ended.push_back("took too long"); });
  hub.AwaitRevision(9, absl::Seconds(5), [&] { ended.push_back("closed"); });
  EXPECT_THAT(ended, ::testing::ElementsAre("is there"));

  hub.Publish({Put(1, "j-1")});
  hub.Expire(absl::Milliseconds(999));
  EXPECT_THAT(ended, ::testing::SizeIs(1));
  hub.Publish({Put(3, "j-1")});
  EXPECT_EQ(ended.back(), "is published");
  hub.Expire(absl::Seconds(1));
  EXPECT_EQ(ended.back(), "took too long");
  hub.Close();
  EXPECT_EQ(ended.back(), "closed");
  hub.AwaitRevision(9, absl::Seconds(9), [&] { ended.push_back("was closed"); });
  EXPECT_EQ(ended.back(), "was closed");
}

}  // namespace
}  // namespace llmctl::runtime
