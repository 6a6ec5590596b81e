// Backups of a store that is being written to, and what a restored store must never do: hand out a number again.
#include "coordinator/store/sqlite/backup.h"

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include "absl/strings/str_cat.h"

#include "coordinator/store/record_job.h"
#include "coordinator/store/sqlite/migrations.h"
#include "coordinator/store/sqlite/sqlite_store.h"
#include "tests/store/store_conformance.h"

namespace llmctl::store {
namespace {

using ::testing::HasSubstr;

class BackupTest : public ::testing::Test {
 protected:
  BackupTest() {
    char path[] = "/tmp/llm-backup-XXXXXX";
    directory_ = mkdtemp(path);
  }
  ~BackupTest() override { std::filesystem::remove_all(directory_); }

  std::string Path(const std::string& name) const { return directory_ + "/" + name; }
  std::unique_ptr<Store> Open(const std::string& name = "coordinator.db") {
    absl::StatusOr<std::unique_ptr<Store>> store = OpenSqliteStore({.path = Path(name)});
    EXPECT_TRUE(store.ok()) << store.status();
    return *std::move(store);
  }
  // A store with one running job, backed up to "backup".
  void MakeBackup() {
    Job job = MakeJob("j-1");
    job.phase = JobPhase::kRunning;
    job.last_attempt = 2;
    job.last_generation = 3;
    Job ended = MakeJob("j-2");
    ended.phase = JobPhase::kSucceeded;
    std::unique_ptr<Store> store = Open();
    term_ = *store->AcquireTerm();
    ASSERT_TRUE(store->Commit(term_, {Put(job), Put(ended), PutCounters{{3, 17}}}).ok());
    ASSERT_TRUE(store->Backup(Path("backup")).ok());
  }

  std::string directory_;
  int64_t term_ = 0;
};

// Batches of two jobs and a counter: half a batch in the copy would show.
TEST_F(BackupTest, CopyOfAStoreThatIsBeingWrittenIsOfOneMoment) {
  std::unique_ptr<Store> store = Open();
  int64_t term = *store->AcquireTerm();
  std::atomic<int64_t> committed = 0;
  std::atomic<bool> stop = false;
  std::thread writer([&] {
    for (int64_t batch = 0; !stop; ++batch) {
      Job first = MakeJob(absl::StrCat("j-", 2 * batch)), second = MakeJob(absl::StrCat("j-", 2 * batch + 1));
      first.spec.assign(20000, 'x');
      ASSERT_TRUE(store->Commit(term, {Put(first), Put(second), PutCounters{{2 * batch + 2, batch + 1}}}).ok());
      ++committed;
    }
  });
  while (committed < 50) std::this_thread::yield();
  int64_t before = committed;

  absl::Status made = store->Backup(Path("backup"));

  int64_t after = committed;
  stop = true;
  writer.join();
  ASSERT_TRUE(made.ok()) << made;
  // Nobody waited for the copy.
  EXPECT_GT(after, before);
  BackupHeader header = *ReadBackupHeader(Path("backup"));
  EXPECT_GE(header.revision, before);
  EXPECT_EQ(header.jobs, 2 * header.revision);
  ASSERT_TRUE(RestoreSqliteStore({.backup = Path("backup"), .path = Path("restored.db")}).ok());
  EXPECT_EQ(Open("restored.db")->Load()->jobs.size(), 2u * header.revision);
}

TEST_F(BackupTest, RestoredStoreBeginsBeyondAllThatMayHaveBeenHandedOut) {
  MakeBackup();

  absl::StatusOr<Restored> restored = RestoreSqliteStore({.backup = Path("backup"), .path = Path("restored.db")});

  ASSERT_TRUE(restored.ok()) << restored.status();
  EXPECT_EQ(restored->header.jobs, 2);
  EXPECT_EQ(restored->replaced, "");
  std::unique_ptr<Store> store = Open("restored.db");
  Records records = *store->Load();
  EXPECT_EQ(records.counters.next_job, 3 + kRestoreGap);
  EXPECT_GT(records.counters.revision, 17 + kRestoreGap);
  EXPECT_EQ(records.jobs.at(0).last_generation, 3);
  EXPECT_EQ(records.jobs.at(0).generation_floor, 3 + kRestoreGap);
  EXPECT_EQ(records.jobs.at(1).generation_floor, 0);
  EXPECT_GT(*store->AcquireTerm(), term_ + kRestoreGap);
}

TEST_F(BackupTest, SecondRestoreGoesBeyondTheFirst) {
  MakeBackup();
  ASSERT_TRUE(RestoreSqliteStore({.backup = Path("backup"), .path = Path("restored.db")}).ok());
  ASSERT_TRUE(Open("restored.db")->Backup(Path("again")).ok());

  ASSERT_TRUE(RestoreSqliteStore({.backup = Path("again"), .path = Path("third.db")}).ok());

  EXPECT_EQ(Open("third.db")->Load()->jobs.at(0).generation_floor, 3 + 2 * kRestoreGap);
}

TEST_F(BackupTest, StoreWithJobsIsReplacedOnlyByForceAndMovedAside) {
  MakeBackup();
  {
    std::unique_ptr<Store> store = Open();
    ASSERT_TRUE(store->Commit(*store->AcquireTerm(), {Put(MakeJob("j-9"))}).ok());
  }
  RestoreOptions options = {.backup = Path("backup"), .path = Path("coordinator.db")};

  absl::Status refused = RestoreSqliteStore(options).status();
  options.force = true;
  absl::StatusOr<Restored> restored = RestoreSqliteStore(options);

  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(refused.message()), testing::AllOf(HasSubstr("3 jobs"), HasSubstr("--force")));
  ASSERT_TRUE(restored.ok()) << restored.status();
  EXPECT_EQ(Open()->Load()->jobs.size(), 2u);
  EXPECT_EQ((*OpenSqliteStore({.path = restored->replaced}))->Load()->jobs.size(), 3u);
}

TEST_F(BackupTest, StoreThatACoordinatorHasOpenIsNotTouched) {
  MakeBackup();
  std::unique_ptr<Store> running = Open();

  absl::Status status =
      RestoreSqliteStore({.backup = Path("backup"), .path = Path("coordinator.db"), .force = true}).status();

  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr(absl::StrCat("pid ", getpid())));
  EXPECT_EQ(running->Load()->jobs.size(), 2u);
}

TEST_F(BackupTest, DamagedOrForeignFileIsRefusedBeforeAnythingIsReplaced) {
  MakeBackup();
  {
    std::fstream file(Path("backup"), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(kBackupHeaderBytes + 5000);
    file.put('!');
  }
  std::ofstream(Path("letter")) << "Dear coordinator";

  absl::Status damaged = RestoreSqliteStore({.backup = Path("backup"), .path = Path("new.db")}).status();
  absl::Status foreign = RestoreSqliteStore({.backup = Path("letter"), .path = Path("new.db")}).status();

  EXPECT_EQ(damaged.code(), absl::StatusCode::kDataLoss) << damaged;
  EXPECT_EQ(foreign.code(), absl::StatusCode::kInvalidArgument) << foreign;
  EXPECT_FALSE(std::filesystem::exists(Path("new.db")));
}

// Stores of every earlier schema, made by the statements that made them.
TEST_F(BackupTest, OlderStoreIsBroughtUpToDateAndKeptAsItWas) {
  for (size_t schema = 1; schema < Migrations().size(); ++schema) {
    SCOPED_TRACE(schema);
    const std::string path = Path(absl::StrCat("schema-", schema, ".db"));
    sqlite3* db = nullptr;
    ASSERT_EQ(sqlite3_open(path.c_str(), &db), SQLITE_OK);
    for (size_t step = 0; step < schema; ++step) {
      for (const char* statement : Migrations()[step]) {
        ASSERT_EQ(sqlite3_exec(db, statement, nullptr, nullptr, nullptr), SQLITE_OK) << statement;
      }
    }
    std::string insert = absl::StrCat("INSERT INTO job VALUES ('j-1', 'default', 'train', 'queued', '",
                                      EncodeJob(MakeJob("j-1")), "'); PRAGMA user_version = ", schema);
    ASSERT_EQ(sqlite3_exec(db, insert.c_str(), nullptr, nullptr, nullptr), SQLITE_OK) << sqlite3_errmsg(db);
    sqlite3_close(db);

    {
      std::unique_ptr<Store> store = *OpenSqliteStore({.path = path});
      Records upgraded = *store->Load();

      ASSERT_EQ(upgraded.jobs.size(), 1u);
      EXPECT_TRUE(upgraded.jobs[0] == MakeJob("j-1"));
      EXPECT_TRUE(store->ReadCrashes()->empty());
    }
    std::string kept = absl::StrCat(path, ".schema-", schema, ".backup");
    EXPECT_EQ(ReadBackupHeader(kept)->schema, static_cast<int>(schema));
    ASSERT_TRUE(RestoreSqliteStore({.backup = kept, .path = path + ".older"}).ok());
    EXPECT_EQ((*OpenSqliteStore({.path = path + ".older"}))->Load()->jobs.size(), 1u);
  }
}

// A restore that was killed may have left its work behind.
TEST_F(BackupTest, LeftoversOfAnEarlierRestoreDoNotReachTheStore) {
  MakeBackup();
  std::ofstream(Path("restored.db.restoring")) << "half a database";
  std::ofstream(Path("restored.db.restoring-journal")) << "what it was before";

  ASSERT_TRUE(RestoreSqliteStore({.backup = Path("backup"), .path = Path("restored.db")}).ok());

  EXPECT_EQ(Open("restored.db")->Load()->jobs.size(), 2u);
}

}  // namespace
}  // namespace llmctl::store
