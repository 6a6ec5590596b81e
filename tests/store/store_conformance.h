// What every backend of the store must do. A backend's test includes this, implements Backend and instantiates
// the suite with it.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "coordinator/store/store.h"

namespace llmctl::store {

// One stored state that can be opened again and again, by one at a time.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual absl::StatusOr<std::unique_ptr<Store>> Open() = 0;
  // From the next Open() on: little more fits than is there ("full disk"), or as much as is asked.
  virtual void LimitSpace(bool limited) = 0;
  // What is stored looks as if a newer program had written it.
  virtual void PretendNewerSchema() = 0;
};

inline Job MakeJob(const std::string& id) {
  Job job;
  job.id = JobId(id);
  job.name = "train";
  job.project = "default";
  job.spec = std::string("\x08\x00\xff spec", 8);
  job.idempotency_key = "key-" + id;
  job.submit_time = absl::FromUnixNanos(1700000000123456789);
  return job;
}

inline PutJob Put(Job job) { return {std::make_shared<const Job>(std::move(job))}; }

template <typename BackendType>
class StoreConformance : public ::testing::Test {
 protected:
  std::unique_ptr<Store> OpenOrDie() {
    absl::StatusOr<std::unique_ptr<Store>> store = backend.Open();
    EXPECT_TRUE(store.ok()) << store.status();
    return *std::move(store);
  }

  BackendType backend;
};
TYPED_TEST_SUITE_P(StoreConformance);

TYPED_TEST_P(StoreConformance, NewStoreIsEmpty) {
  std::unique_ptr<Store> store = this->OpenOrDie();

  absl::StatusOr<Records> records = store->Load();

  ASSERT_TRUE(records.ok()) << records.status();
  EXPECT_TRUE(records->jobs.empty());
  EXPECT_TRUE(records->nodes.empty());
  EXPECT_EQ(records->counters, CounterRecord{});
}

TYPED_TEST_P(StoreConformance, ReopenedStoreHoldsWhatWasCommitted) {
  Job job = MakeJob("j-1");
  Node node;
  node.id = NodeId("host-a");
  node.incarnation = 4;
  {
    std::unique_ptr<Store> store = this->OpenOrDie();
    int64_t term = *store->AcquireTerm();
    ASSERT_TRUE(store->Commit(term, {Put(job), PutNode{std::make_shared<const Node>(node)}, PutCounters{{2, 1}}}).ok());
    job.phase = JobPhase::kRunning;
    ASSERT_TRUE(store->Commit(term, {Put(job), Put(MakeJob("j-2")), PutCounters{{3, 2}}}).ok());
    ASSERT_TRUE(store->Commit(term, {EraseJob{JobId("j-2")}, PutCounters{{3, 3}}}).ok());
  }

  std::unique_ptr<Store> store = this->OpenOrDie();
  absl::StatusOr<Records> records = store->Load();

  ASSERT_TRUE(records.ok()) << records.status();
  ASSERT_EQ(records->jobs.size(), 1u);
  EXPECT_TRUE(records->jobs[0] == job);
  ASSERT_EQ(records->nodes.size(), 1u);
  EXPECT_TRUE(records->nodes[0] == node);
  EXPECT_EQ(records->counters, (CounterRecord{3, 3}));
}

TYPED_TEST_P(StoreConformance, TermGrowsWithEveryOpening) {
  int64_t first = *this->OpenOrDie()->AcquireTerm();
  int64_t second = *this->OpenOrDie()->AcquireTerm();

  EXPECT_EQ(second, first + 1);
}

TYPED_TEST_P(StoreConformance, CommitOfAnOlderTermIsRefusedAndChangesNothing) {
  std::unique_ptr<Store> store = this->OpenOrDie();
  int64_t old_term = *store->AcquireTerm();
  ASSERT_TRUE(store->AcquireTerm().ok());

  absl::Status status = store->Commit(old_term, {Put(MakeJob("j-1"))});

  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_TRUE(store->Load()->jobs.empty());
}

TYPED_TEST_P(StoreConformance, SameBatchTwiceIsHarmless) {
  std::unique_ptr<Store> store = this->OpenOrDie();
  int64_t term = *store->AcquireTerm();
  JobEventRecord event{1, absl::FromUnixNanos(5), 0, 0, "submitted", "by a test"};
  std::vector<Change> batch = {Put(MakeJob("j-1")), AppendEvent{JobId("j-1"), event}, PutCounters{{2, 1}}};

  ASSERT_TRUE(store->Commit(term, batch).ok());
  ASSERT_TRUE(store->Commit(term, batch).ok());

  EXPECT_EQ(store->Load()->jobs.size(), 1u);
  EXPECT_EQ(*store->ReadEvents(JobId("j-1"), 0, 10), std::vector<JobEventRecord>{event});
}

TYPED_TEST_P(StoreConformance, EventsAreReadInPagesAndGoWithTheirJob) {
  std::unique_ptr<Store> store = this->OpenOrDie();
  int64_t term = *store->AcquireTerm();
  std::vector<Change> batch = {Put(MakeJob("j-1"))};
  for (int64_t i = 1; i <= 5; ++i) {
    batch.push_back(AppendEvent{JobId("j-1"), {i, absl::FromUnixNanos(i), 1, 1, "checkpoint", "step"}});
  }
  ASSERT_TRUE(store->Commit(term, batch).ok());

  std::vector<JobEventRecord> page = *store->ReadEvents(JobId("j-1"), 2, 2);
  ASSERT_TRUE(store->Commit(term, {EraseJob{JobId("j-1")}}).ok());

  ASSERT_EQ(page.size(), 2u);
  EXPECT_EQ(page[0].sequence, 3);
  EXPECT_EQ(page[1].sequence, 4);
  EXPECT_TRUE(store->ReadEvents(JobId("j-1"), 0, 10)->empty());
}

TYPED_TEST_P(StoreConformance, CrashesAreCountedAndForgotten) {
  CrashRecord crash{"job j-1", 2, Focus::Stage::kLoad, absl::FromUnixNanos(17)};
  {
    std::unique_ptr<Store> store = this->OpenOrDie();
    int64_t term = *store->AcquireTerm();
    ASSERT_TRUE(store->Commit(term, {PutCrash{{"job j-1", 1, Focus::Stage::kStep, absl::FromUnixNanos(5)}}}).ok());
    ASSERT_TRUE(store->Commit(term, {PutCrash{crash}, PutDamaged{{"job j-2", "{}", "why"}}}).ok());
  }

  std::unique_ptr<Store> store = this->OpenOrDie();
  EXPECT_EQ(*store->ReadCrashes(), std::vector<CrashRecord>{crash});
  EXPECT_EQ(store->Load()->damaged_before, (std::vector<DamagedRecord>{{"job j-2", "{}", "why"}}));
  ASSERT_TRUE(store->Commit(*store->AcquireTerm(), {EraseCrash{"job j-1"}, EraseJob{JobId("j-2")}}).ok());
  EXPECT_TRUE(store->ReadCrashes()->empty());
  EXPECT_TRUE(store->Load()->damaged_before.empty());
}

// Fills the store until it is full: the batch that did not fit must leave no trace, everything acknowledged must
// be there, and the same batch must go through when there is room again.
TYPED_TEST_P(StoreConformance, FullDiskRefusesWholeBatchesAndLosesNothing) {
  this->OpenOrDie().reset();
  this->backend.LimitSpace(true);
  std::unique_ptr<Store> store = this->OpenOrDie();
  int64_t term = *store->AcquireTerm();
  std::vector<Change> batch;
  absl::Status status;
  int64_t committed = 0;
  while (committed < 1000) {
    batch.clear();
    for (int i = 0; i < 2; ++i) {
      Job job = MakeJob("j-" + std::to_string(2 * committed + i));
      job.spec.assign(20000, 'x');
      batch.push_back(Put(std::move(job)));
    }
    batch.push_back(PutCounters{{2 * committed + 3, committed + 1}});
    status = store->Commit(term, batch);
    if (!status.ok()) break;
    ++committed;
  }

  ASSERT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  ASSERT_GT(committed, 0);
  EXPECT_EQ(store->Load()->jobs.size(), 2u * committed);
  EXPECT_EQ(store->Load()->counters.revision, committed);

  store.reset();
  this->backend.LimitSpace(false);
  store = this->OpenOrDie();
  EXPECT_EQ(store->Load()->jobs.size(), 2u * committed);
  EXPECT_TRUE(store->Commit(*store->AcquireTerm(), batch).ok());
  EXPECT_EQ(store->Load()->jobs.size(), 2u * committed + 2);
}

TYPED_TEST_P(StoreConformance, NewerSchemaIsRefusedWithWhatToDo) {
  this->OpenOrDie().reset();
  this->backend.PretendNewerSchema();

  absl::StatusOr<std::unique_ptr<Store>> store = this->backend.Open();

  ASSERT_EQ(store.status().code(), absl::StatusCode::kFailedPrecondition) << store.status();
  EXPECT_THAT(std::string(store.status().message()), ::testing::HasSubstr("newer"));
}

REGISTER_TYPED_TEST_SUITE_P(StoreConformance, NewStoreIsEmpty, ReopenedStoreHoldsWhatWasCommitted,
                            TermGrowsWithEveryOpening, CommitOfAnOlderTermIsRefusedAndChangesNothing,
                            SameBatchTwiceIsHarmless, EventsAreReadInPagesAndGoWithTheirJob,
                            CrashesAreCountedAndForgotten, FullDiskRefusesWholeBatchesAndLosesNothing,
                            NewerSchemaIsRefusedWithWhatToDo);

}  // namespace llmctl::store
