// The conformance suite on SQLite, and what is particular to a file.
#include "coordinator/store/sqlite/sqlite_store.h"

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <sys/wait.h>
#include <unistd.h>

#include <sqlite3.h>

#include "absl/strings/str_cat.h"

#include "coordinator/store/record_job.h"
#include "tests/store/store_conformance.h"

namespace llmctl::store {
namespace {

class SqliteBackend final : public Backend {
 public:
  SqliteBackend() {
    char path[] = "/tmp/llm-store-XXXXXX";
    directory_ = mkdtemp(path);
  }
  ~SqliteBackend() override { std::filesystem::remove_all(directory_); }

  absl::StatusOr<std::unique_ptr<Store>> Open() override {
    return OpenSqliteStore({.path = path(), .pages_max = limited_ ? 60 : 0});
  }
  void LimitSpace(bool limited) override { limited_ = limited; }
  void PretendNewerSchema() override { Execute("PRAGMA user_version = 99"); }

  void Execute(const char* sql) {
    sqlite3* db = nullptr;
    ASSERT_EQ(sqlite3_open(path().c_str(), &db), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(db, sql, nullptr, nullptr, nullptr), SQLITE_OK) << sqlite3_errmsg(db);
    sqlite3_close(db);
  }

  std::string path() const { return directory_ + "/coordinator.db"; }

 private:
  std::string directory_;
  bool limited_ = false;
};

INSTANTIATE_TYPED_TEST_SUITE_P(Sqlite, StoreConformance, SqliteBackend);

TEST(SqliteStore, SecondOpenerLearnsWhoHoldsTheFile) {
  SqliteBackend backend;
  std::unique_ptr<Store> holder = *backend.Open();

  absl::StatusOr<std::unique_ptr<Store>> second = backend.Open();

  ASSERT_EQ(second.status().code(), absl::StatusCode::kFailedPrecondition) << second.status();
  EXPECT_THAT(std::string(second.status().message()), ::testing::HasSubstr(absl::StrCat("pid ", getpid())));
}

// A child commits batches of two jobs until it is killed; the parent then looks for half a batch.
TEST(SqliteStore, KilledWriterLeavesWholeBatchesOnly) {
  SqliteBackend backend;
  int pipe_ends[2];
  ASSERT_EQ(pipe(pipe_ends), 0);
  pid_t child = fork();
  if (child == 0) {
    std::unique_ptr<Store> store = *backend.Open();
    int64_t term = *store->AcquireTerm();
    for (int64_t batch = 0;; ++batch) {
      absl::Status status = store->Commit(term, {Put(MakeJob(absl::StrCat("j-", 2 * batch))),
                                                 Put(MakeJob(absl::StrCat("j-", 2 * batch + 1))),
                                                 PutCounters{{2 * batch + 2, batch + 1}}});
      if (!status.ok() || write(pipe_ends[1], "x", 1) != 1) _exit(1);
    }
  }
  close(pipe_ends[1]);
  char acknowledged[20];
  for (char& byte : acknowledged) ASSERT_EQ(read(pipe_ends[0], &byte, 1), 1);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  close(pipe_ends[0]);

  Records records = *(*backend.Open())->Load();

  EXPECT_GE(records.counters.revision, static_cast<int64_t>(sizeof acknowledged));
  EXPECT_EQ(records.jobs.size(), 2u * records.counters.revision);
}

// A file of the first schema is brought up to date, with all that it holds.
TEST(SqliteStore, JobsOfTheFirstSchemaAreKept) {
  SqliteBackend backend;
  {
    std::unique_ptr<Store> store = *backend.Open();
    std::vector<Change> batch = {Put(MakeJob("j-7")), Put(MakeJob("j-10")), PutCounters{{11, 1}}};
    ASSERT_TRUE(store->Commit(*store->AcquireTerm(), batch).ok());
  }
  for (const char* sql : {"ALTER TABLE job RENAME TO newer",
                          "CREATE TABLE job (id TEXT PRIMARY KEY, project TEXT NOT NULL, name TEXT NOT NULL, "
                          "phase TEXT NOT NULL, record TEXT NOT NULL) WITHOUT ROWID",
                          "INSERT INTO job SELECT * FROM newer", "DROP TABLE newer", "DROP TABLE crash",
                          "DROP TABLE damaged", "PRAGMA user_version = 1"}) {
    backend.Execute(sql);
  }

  std::unique_ptr<Store> store = *backend.Open();

  Records records = *store->Load();
  ASSERT_EQ(records.jobs.size(), 2u);
  EXPECT_TRUE(records.jobs[0] == MakeJob("j-10"));
  EXPECT_TRUE(records.jobs[1] == MakeJob("j-7"));
  Job again = MakeJob("j-7");
  again.phase = JobPhase::kFailed;
  ASSERT_TRUE(store->Commit(*store->AcquireTerm(), {Put(again)}).ok());
  EXPECT_EQ(store->Load()->jobs.size(), 2u);
}

// What is behind the last commit of a log that is longer than what was written must never come back.
TEST(SqliteStore, LogOfFullLengthHoldsWhatWasCommittedAndNoMore) {
  SqliteBackend backend;
  pid_t child = fork();
  if (child == 0) {
    std::unique_ptr<Store> store = *backend.Open();
    int64_t term = *store->AcquireTerm();
    absl::Status status = store->Commit(term, {Put(MakeJob("j-1")), PutCounters{{2, 1}}});
    // Without closing the file, which would empty the log.
    _exit(status.ok() ? 0 : 1);
  }
  int status = 1;
  waitpid(child, &status, 0);
  ASSERT_EQ(status, 0);
  EXPECT_GE(std::filesystem::file_size(backend.path() + "-wal"), size_t{4} << 20);

  std::unique_ptr<Store> store = *backend.Open();

  EXPECT_EQ(store->Load()->jobs.size(), 1u);
  EXPECT_EQ(*store->AcquireTerm(), 2);
  ASSERT_TRUE(store->Commit(2, {Put(MakeJob("j-2")), PutCounters{{3, 2}}}).ok());
  store.reset();
  EXPECT_EQ((*backend.Open())->Load()->jobs.size(), 2u);
}

TEST(SqliteStore, DamagedRecordIsKeptApartAndTheOthersAreRead) {
  SqliteBackend backend;
  {
    std::unique_ptr<Store> store = *backend.Open();
    Node node;
    node.id = NodeId("host-a");
    ASSERT_TRUE(store->Commit(*store->AcquireTerm(), {Put(MakeJob("j-7")), Put(MakeJob("j-8")),
                                                      PutNode{std::make_shared<const Node>(node)},
                                                      AppendEvent{JobId("j-7"), {4, absl::FromUnixNanos(1)}}})
                    .ok());
  }
  backend.Execute("UPDATE job SET record = '{\"version\":1,\"phase\":\"sleeping\"}' WHERE id = 'j-7'");
  backend.Execute("UPDATE node SET record = 'nonsense'");

  absl::StatusOr<Records> records = (*backend.Open())->Load();

  ASSERT_TRUE(records.ok()) << records.status();
  ASSERT_EQ(records->jobs.size(), 2u);
  const Job& stand_in = records->jobs[0];
  EXPECT_EQ(stand_in.phase, JobPhase::kSuspended);
  EXPECT_TRUE(stand_in.stand_in);
  EXPECT_EQ(stand_in.name, "train");
  EXPECT_EQ(stand_in.idempotency_key, "key-j-7");
  EXPECT_EQ(stand_in.last_event, 4);
  EXPECT_THAT(stand_in.reason, ::testing::AllOf(::testing::HasSubstr("quarantined"), ::testing::HasSubstr("'phase'")));
  EXPECT_TRUE(records->jobs[1] == MakeJob("j-8"));
  ASSERT_EQ(records->nodes.size(), 1u);
  EXPECT_EQ(records->nodes[0].incarnation, 0);
  // It may have been closed.
  EXPECT_EQ(records->nodes[0].standing.service, NodeService::kCordoned);
  ASSERT_EQ(records->damaged.size(), 2u);
  EXPECT_EQ(records->damaged[0].entity, "job j-7");
  EXPECT_THAT(records->damaged[0].record, ::testing::HasSubstr("sleeping"));
  EXPECT_EQ(records->damaged[1].entity, "node host-a");
}

TEST(SqliteStore, DamagedRecordOfAJobThatHasEndedStaysAsItEnded) {
  SqliteBackend backend;
  {
    std::unique_ptr<Store> store = *backend.Open();
    Job job = MakeJob("j-7");
    job.phase = JobPhase::kSucceeded;
    ASSERT_TRUE(store->Commit(*store->AcquireTerm(), {Put(job)}).ok());
  }
  backend.Execute("UPDATE job SET record = 'nonsense'");

  EXPECT_EQ((*backend.Open())->Load()->jobs.at(0).phase, JobPhase::kSucceeded);
}

// A later build may read what this one could not.
TEST(SqliteStore, KeptRecordThatCanBeReadIsRecovered) {
  SqliteBackend backend;
  std::unique_ptr<Store> store = *backend.Open();
  int64_t term = *store->AcquireTerm();
  ASSERT_TRUE(store->Commit(term, {Put(MakeJob("j-7")), Put(MakeJob("j-8")),
                                   PutDamaged{{"job j-7", EncodeJob(MakeJob("j-7")), "why"}},
                                   PutDamaged{{"job j-8", "nonsense", "why"}}})
                  .ok());

  Records records = *store->Load();

  ASSERT_EQ(records.recovered.size(), 1u);
  EXPECT_TRUE(records.recovered[0] == MakeJob("j-7"));
  EXPECT_EQ(records.damaged_before.size(), 2u);
  // Not while it crashes the coordinator.
  ASSERT_TRUE(store->Commit(term, {PutCrash{{"job j-7", kCrashesMax, Focus::Stage::kStep, absl::Now()}}}).ok());
  EXPECT_TRUE(store->Load()->recovered.empty());
  ASSERT_TRUE(store->Commit(term, {EraseDamaged{"job j-8"}}).ok());
  EXPECT_EQ(store->Load()->damaged_before.size(), 1u);
}

TEST(SqliteStore, RecordOfANewerProgramIsNotTakenForDamage) {
  SqliteBackend backend;
  {
    std::unique_ptr<Store> store = *backend.Open();
    ASSERT_TRUE(store->Commit(*store->AcquireTerm(), {Put(MakeJob("j-7"))}).ok());
  }
  backend.Execute("UPDATE job SET record = '{\"version\":7}'");

  absl::Status status = (*backend.Open())->Load().status();

  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("newer llm-coordinator"));
}

TEST(SqliteStore, RecordThatCrashedTheReaderTwiceIsNotReadAgain) {
  SqliteBackend backend;
  {
    std::unique_ptr<Store> store = *backend.Open();
    ASSERT_TRUE(store->Commit(*store->AcquireTerm(),
                              {Put(MakeJob("j-7")), Put(MakeJob("j-8")),
                               PutCrash{{"job j-7", kCrashesMax, Focus::Stage::kLoad, absl::FromUnixNanos(1)}},
                               PutCrash{{"job j-8", kCrashesMax, Focus::Stage::kStep, absl::FromUnixNanos(1)}}})
                    .ok());
  }

  Records records = *(*backend.Open())->Load();

  EXPECT_TRUE(records.jobs[0].stand_in);
  EXPECT_THAT(records.jobs[0].reason, ::testing::HasSubstr("reading it has crashed"));
  EXPECT_TRUE(records.jobs[1] == MakeJob("j-8"));
}

}  // namespace
}  // namespace llmctl::store
