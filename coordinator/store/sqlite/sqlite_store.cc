#include "coordinator/store/sqlite/sqlite_store.h"

#include <utility>

#include <soci/soci.h>
#include <soci/sqlite3/soci-sqlite3.h>

#include "absl/strings/str_cat.h"

#include "common/base/mutex.h"
#include "common/base/status.h"
#include "coordinator/store/record_job.h"
#include "coordinator/store/record_node.h"
#include "coordinator/store/sqlite/file_lock.h"
#include "coordinator/store/sqlite/log_length.h"
#include "coordinator/store/sqlite/migrations.h"
#include "coordinator/store/sqlite/sqlite_error.h"
#include "coordinator/store/sqlite/statements.h"

namespace llmctl::store {
namespace {

// The file itself; not thread-safe.
class SqliteFile {
 public:
  explicit SqliteFile(SqliteOptions options) : options_(std::move(options)) {}

  absl::Status Open() {
    if (options_.vfs.empty()) LLM_RETURN_IF_ERROR(lock_.Acquire(options_.path + ".lock"));
    LLM_RETURN_IF_ERROR(Guarded("open", [&]() {
      session_.open(soci::sqlite3, absl::StrCat("dbname=\"", FileName(), "\""));
      // EXCLUSIVE before the first access in WAL mode: then SQLite needs no shared memory file.
      session_ << "PRAGMA locking_mode = EXCLUSIVE";
      session_ << "PRAGMA journal_mode = WAL";
      session_ << "PRAGMA synchronous = FULL";
      if (options_.pages_max > 0) session_ << absl::StrCat("PRAGMA max_page_count = ", options_.pages_max);
      return absl::OkStatus();
    }));
    LLM_RETURN_IF_ERROR(Migrate());
    if (options_.vfs.empty()) LengthenLog(options_.path);
    return Guarded("prepare the statements of", [&]() {
      statements_ = std::make_unique<Statements>(session_);
      return absl::OkStatus();
    });
  }

  absl::StatusOr<int64_t> AcquireTerm() {
    long long term = 0;
    LLM_RETURN_IF_ERROR(InTransaction("take the next term in", [&]() {
      term = statements_->Term() + 1;
      session_ << "UPDATE counter SET value = :term WHERE name = 'term'", soci::use(term);
      return absl::OkStatus();
    }));
    return term;
  }

  absl::StatusOr<Records> Load() {
    Records records;
    LLM_RETURN_IF_ERROR(Guarded("load", [&]() { return ReadAll(records); }));
    return records;
  }

  absl::Status Commit(int64_t term, const std::vector<Change>& batch) {
    return InTransaction("commit to", [&]() {
      long long newest = statements_->Term();
      if (newest != term) {
        return absl::FailedPreconditionError(absl::StrCat(
            "this coordinator's term is ", term, ", the store's is ", newest, ": another coordinator took over"));
      }
      for (const Change& change : batch) {
        std::visit([&](const auto& c) { statements_->Apply(c); }, change);
      }
      return absl::OkStatus();
    });
  }

  absl::StatusOr<std::vector<JobEventRecord>> ReadEvents(const JobId& job, int64_t after, int limit) {
    std::vector<JobEventRecord> events;
    LLM_RETURN_IF_ERROR(Guarded("read events from", [&]() {
      long long sequence_after = after, sequence = 0, time_ns = 0, attempt = 0, generation = 0;
      std::string kind, text;
      soci::statement rows =
          (session_.prepare << "SELECT sequence, time_ns, attempt, generation, kind, text FROM job_event "
                               "WHERE job = :job AND sequence > :after ORDER BY sequence LIMIT :limit",
           soci::use(job.value()), soci::use(sequence_after), soci::use(limit), soci::into(sequence),
           soci::into(time_ns), soci::into(attempt), soci::into(generation), soci::into(kind), soci::into(text));
      rows.execute();
      while (rows.fetch()) {
        events.push_back({sequence, absl::FromUnixNanos(time_ns), attempt, generation, kind, text});
      }
      return absl::OkStatus();
    }));
    return events;
  }

 private:
  // SOCI has no other way to name a VFS.
  std::string FileName() const {
    return options_.vfs.empty() ? options_.path : absl::StrCat("file:", options_.path, "?vfs=", options_.vfs);
  }

  // Turns SOCI's exceptions into a status, here and nowhere else.
  template <typename Body>
  absl::Status Guarded(const char* what, Body body) {
    try {
      return Annotate(body(), what, " ", options_.path);
    } catch (const soci::soci_error& error) {
      return absl::Status(StatusCodeOf(error), absl::StrCat(what, " ", options_.path, ": ", error.what()));
    }
  }

  template <typename Body>
  absl::Status InTransaction(const char* what, Body body) {
    absl::Status status = Guarded(what, [&]() {
      session_ << "BEGIN IMMEDIATE";
      absl::Status done = body();
      if (done.ok()) session_ << "COMMIT";
      return done;
    });
    if (!status.ok()) {
      // SQLite may have rolled back already; then this has nothing to do and says so.
      Guarded("roll back in", [&]() {
        session_ << "ROLLBACK";
        return absl::OkStatus();
      }).IgnoreError();
    }
    return status;
  }

  absl::Status Migrate() {
    int schema = 0;
    LLM_RETURN_IF_ERROR(Guarded("read the schema version of", [&]() {
      session_ << "PRAGMA user_version", soci::into(schema);
      return absl::OkStatus();
    }));
    const std::vector<Migration>& migrations = Migrations();
    int newest = static_cast<int>(migrations.size());
    if (schema > newest) {
      return absl::FailedPreconditionError(absl::StrCat(
          options_.path, " has schema ", schema, ", this program knows schemas up to ", newest,
          ": a newer llm-coordinator wrote it; run that version or newer, or restore a backup made before the upgrade"));
    }
    for (int step = schema; step < newest; ++step) {
      LLM_RETURN_IF_ERROR(InTransaction("bring up to date", [&]() {
        for (const char* statement : migrations[step]) session_ << statement;
        session_ << absl::StrCat("PRAGMA user_version = ", step + 1);
        return absl::OkStatus();
      }));
    }
    return absl::OkStatus();
  }

  absl::Status ReadAll(Records& records) {
    session_ << "SELECT value FROM counter WHERE name = 'next_job'", soci::into(records.counters.next_job);
    session_ << "SELECT value FROM counter WHERE name = 'revision'", soci::into(records.counters.revision);
    std::string id, record;
    soci::statement jobs = (session_.prepare << "SELECT id, record FROM job ORDER BY id", soci::into(id),
                            soci::into(record));
    jobs.execute();
    while (jobs.fetch()) {
      LLM_ASSIGN_OR_RETURN(Job job, DecodeJob(JobId(id), record));
      records.jobs.push_back(std::move(job));
    }
    soci::statement nodes = (session_.prepare << "SELECT id, record FROM node ORDER BY id", soci::into(id),
                             soci::into(record));
    nodes.execute();
    while (nodes.fetch()) {
      LLM_ASSIGN_OR_RETURN(Node node, DecodeNode(NodeId(id), record));
      records.nodes.push_back(std::move(node));
    }
    return absl::OkStatus();
  }

  const SqliteOptions options_;
  FileLock lock_;
  soci::session session_;
  // After the session: statements must go first.
  std::unique_ptr<Statements> statements_;
};

class SqliteStore final : public Store {
 public:
  explicit SqliteStore(SqliteOptions options) : file_(std::move(options)) {}

  absl::Status Open() {
    MutexLock lock(mutex_);
    return file_.Open();
  }
  absl::StatusOr<int64_t> AcquireTerm() override {
    MutexLock lock(mutex_);
    return file_.AcquireTerm();
  }
  absl::StatusOr<Records> Load() override {
    MutexLock lock(mutex_);
    return file_.Load();
  }
  absl::Status Commit(int64_t term, const std::vector<Change>& batch) override {
    MutexLock lock(mutex_);
    return file_.Commit(term, batch);
  }
  absl::StatusOr<std::vector<JobEventRecord>> ReadEvents(const JobId& job, int64_t after, int limit) override {
    MutexLock lock(mutex_);
    return file_.ReadEvents(job, after, limit);
  }

 private:
  Mutex mutex_;
  SqliteFile file_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

absl::StatusOr<std::unique_ptr<Store>> OpenSqliteStore(const SqliteOptions& options) {
  auto store = std::make_unique<SqliteStore>(options);
  LLM_RETURN_IF_ERROR(store->Open());
  return std::unique_ptr<Store>(std::move(store));
}

}  // namespace llmctl::store
