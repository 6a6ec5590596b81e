// The conformance suite on SQLite, and what is particular to a file.
#include "coordinator/store/sqlite/sqlite_store.h"

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <sys/wait.h>
#include <unistd.h>

#include <sqlite3.h>

#include "absl/strings/str_cat.h"

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

 private:
  std::string path() const { return directory_ + "/coordinator.db"; }

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
  EXPECT_EQ(stand_in.phase, JobPhase::kFailed);
  EXPECT_EQ(stand_in.name, "train");
  EXPECT_EQ(stand_in.idempotency_key, "key-j-7");
  EXPECT_EQ(stand_in.last_event, 4);
  EXPECT_THAT(stand_in.reason, ::testing::AllOf(::testing::HasSubstr("quarantined"), ::testing::HasSubstr("'phase'")));
  EXPECT_TRUE(records->jobs[1] == MakeJob("j-8"));
  ASSERT_EQ(records->nodes.size(), 1u);
  EXPECT_EQ(records->nodes[0].incarnation, 0);
  ASSERT_EQ(records->damaged.size(), 2u);
  EXPECT_EQ(records->damaged[0].entity, "job j-7");
  EXPECT_THAT(records->damaged[0].record, ::testing::HasSubstr("sleeping"));
  EXPECT_EQ(records->damaged[1].entity, "node host-a");
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

  EXPECT_EQ(records.jobs[0].phase, JobPhase::kFailed);
  EXPECT_THAT(records.jobs[0].reason, ::testing::HasSubstr("reading it has crashed"));
  EXPECT_TRUE(records.jobs[1] == MakeJob("j-8"));
}

}  // namespace
}  // namespace llmctl::store
