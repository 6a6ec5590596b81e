// The disk that forgets, under the real SQLite store.
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "coordinator/store/sqlite/sqlite_store.h"
#include "simulator/crash_disk.h"

namespace llmctl::simulator {
namespace {

constexpr char kFile[] = "store.db";

std::unique_ptr<store::Store> Open(const CrashDisk& disk) {
  absl::StatusOr<std::unique_ptr<store::Store>> opened =
      store::OpenSqliteStore({.path = kFile, .vfs = disk.name()});
  EXPECT_TRUE(opened.ok()) << opened.status();
  return *std::move(opened);
}

std::vector<store::Change> PutJobNumber(int number) {
  auto job = std::make_shared<Job>();
  job->id = JobId("j-" + std::to_string(number));
  job->project = "default";
  // Long enough for several pages, which can be torn.
  job->spec = std::string(20'000, 'x');
  return {store::PutJob{job}, store::PutCounters{{number + 1, number}}};
}

// A process that was killed, or a machine that lost its power.
CrashDisk::Damage Crash(CrashDisk& disk, std::unique_ptr<store::Store>& store, bool power_lost, Dice& dice) {
  disk.Die();
  store.reset();
  return disk.Revive(power_lost, dice);
}

TEST(CrashDisk, WhatWasCommittedSurvivesAPowerLoss) {
  CrashDisk disk("power");
  Dice dice(1);
  auto store = Open(disk);
  int64_t term = *store->AcquireTerm();
  for (int i = 1; i <= 5; ++i) ASSERT_TRUE(store->Commit(term, PutJobNumber(i)).ok());

  Crash(disk, store, /*power_lost=*/true, dice);

  store = Open(disk);
  EXPECT_EQ(store->Load()->jobs.size(), 5u);
  EXPECT_EQ(*store->AcquireTerm(), term + 1);
}

TEST(CrashDisk, ACommitInWhichTheDiskDiesHappensWholeOrNotAtAll) {
  int kept = 0, lost = 0, dropped = 0, torn = 0;
  for (int operations = 0; operations < 60; ++operations) {
    CrashDisk disk("dies");
    Dice dice(operations);
    auto store = Open(disk);
    int64_t term = *store->AcquireTerm();
    ASSERT_TRUE(store->Commit(term, PutJobNumber(1)).ok());
    disk.DieAfter(operations);
    bool ok = store->Commit(term, PutJobNumber(2)).ok();

    CrashDisk::Damage damage = Crash(disk, store, /*power_lost=*/true, dice);

    store = Open(disk);
    absl::StatusOr<store::Records> records = store->Load();
    ASSERT_TRUE(records.ok()) << records.status();
    bool there = records->jobs.size() == 2;
    EXPECT_EQ(records->counters.next_job, there ? 3 : 2) << "half a commit, after " << operations << " operations";
    EXPECT_TRUE(there || !ok) << "a commit that was confirmed is lost";
    (there ? kept : lost) += 1;
    dropped += damage.dropped;
    torn += damage.torn;
  }
  EXPECT_GT(kept, 0);
  EXPECT_GT(lost, 0);
  EXPECT_GT(dropped, 0);
  EXPECT_GT(torn, 0);
}

TEST(CrashDisk, AFullDiskRefusesAndKeepsWhatIsThere) {
  CrashDisk disk("full");
  auto store = Open(disk);
  int64_t term = *store->AcquireTerm();
  ASSERT_TRUE(store->Commit(term, PutJobNumber(1)).ok());
  disk.set_full(true);

  absl::Status refused = store->Commit(term, PutJobNumber(2));

  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted) << refused;
  EXPECT_EQ(store->Load()->jobs.size(), 1u);
  disk.set_full(false);
  EXPECT_TRUE(store->Commit(term, PutJobNumber(2)).ok());
}

sqlite3* OpenPlain() {
  sqlite3* db = nullptr;
  EXPECT_EQ(sqlite3_open_v2("file:plain.db?vfs=forgetful", &db,
                            SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_URI, nullptr),
            SQLITE_OK);
  return db;
}

bool Runs(sqlite3* db, const char* sql) { return sqlite3_exec(db, sql, nullptr, nullptr, nullptr) == SQLITE_OK; }

TEST(CrashDisk, AStoreWithoutSyncWouldLoseWhatItConfirmed) {
  // The disk is as forgetful as it claims: the same commit, never synced, is gone whenever one of its writes is.
  int lost = 0;
  for (int seed = 1; seed <= 20; ++seed) {
    CrashDisk disk("forgetful");
    Dice dice(seed);
    sqlite3* db = OpenPlain();
    ASSERT_TRUE(Runs(db, "PRAGMA synchronous = OFF; CREATE TABLE t (x); INSERT INTO t VALUES (1)"));

    disk.Die();
    sqlite3_close(db);
    disk.Revive(/*power_lost=*/true, dice);

    db = OpenPlain();
    lost += !Runs(db, "SELECT x FROM t");
    sqlite3_close(db);
  }
  EXPECT_GT(lost, 5);
}

}  // namespace
}  // namespace llmctl::simulator
