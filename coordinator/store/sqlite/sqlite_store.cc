#include "coordinator/store/sqlite/sqlite_store.h"

#include <chrono>
#include <map>
#include <set>
#include <thread>
#include <utility>

#include <unistd.h>

#include <soci/soci.h>
#include <soci/sqlite3/soci-sqlite3.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

#include "common/base/mutex.h"
#include "common/base/status.h"
#include "coordinator/model/stand_in.h"
#include "coordinator/store/record_job.h"
#include "coordinator/store/record_node.h"
#include "coordinator/store/sqlite/backup.h"
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

  absl::StatusOr<std::vector<CrashRecord>> ReadCrashes() {
    std::vector<CrashRecord> crashes;
    LLM_RETURN_IF_ERROR(Guarded("read crashes from", [&]() {
      std::string entity, stage;
      long long count = 0, time_ns = 0;
      soci::statement rows = (session_.prepare << "SELECT entity, count, stage, time_ns FROM crash ORDER BY entity",
                              soci::into(entity), soci::into(count), soci::into(stage), soci::into(time_ns));
      rows.execute();
      while (rows.fetch()) {
        crashes.push_back({entity, count, stage == "load" ? Focus::Stage::kLoad : Focus::Stage::kStep,
                           absl::FromUnixNanos(time_ns)});
      }
      return absl::OkStatus();
    }));
    return crashes;
  }

  absl::StatusOr<std::unique_ptr<PageCopy>> BeginCopy(const std::string& path) {
    return PageCopy::Begin(session_, path);
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

  // Turns SOCI's exceptions into a status, here and in the making and restoring of backups, and nowhere else.
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
          ": a newer llm-coordinator wrote it; run that version or newer, or restore a backup made before the "
          "upgrade"));
    }
    if (schema > 0 && schema < newest) LLM_RETURN_IF_ERROR(KeepBefore(schema));
    for (int step = schema; step < newest; ++step) {
      LLM_RETURN_IF_ERROR(InTransaction("bring up to date", [&]() {
        for (const char* statement : migrations[step]) session_ << statement;
        session_ << absl::StrCat("PRAGMA user_version = ", step + 1);
        return absl::OkStatus();
      }));
    }
    return absl::OkStatus();
  }

  // The way back to an older program: what the store was before its schema moved on.
  absl::Status KeepBefore(int schema) {
    std::string backup = absl::StrCat(options_.path, ".schema-", schema, ".backup");
    absl::StatusOr<std::unique_ptr<PageCopy>> copy = BeginCopy(backup + ".db");
    absl::StatusOr<bool> done = copy.ok() ? absl::StatusOr<bool>(false) : copy.status();
    while (done.ok() && !*done) done = (*copy)->CopySome();
    absl::Status kept = done.status();
    if (kept.ok()) {
      copy->reset();
      kept = WrapBackup(backup + ".db", backup);
    }
    return Annotate(kept, "keep ", options_.path, " as it is before its schema changes");
  }

  absl::Status ReadAll(Records& records) {
    session_ << "SELECT value FROM counter WHERE name = 'next_job'", soci::into(records.counters.next_job);
    session_ << "SELECT value FROM counter WHERE name = 'revision'", soci::into(records.counters.revision);
    LLM_RETURN_IF_ERROR(ReadCrashing());
    LLM_RETURN_IF_ERROR(ReadDamaged(records));
    LLM_RETURN_IF_ERROR(ReadJobs(records));
    LLM_RETURN_IF_ERROR(ReadNodes(records));
    if (options_.focus != nullptr) options_.focus->Clear();
    return absl::OkStatus();
  }

  // Decodes one record, unless that has crashed the coordinator too often. An error is the record's own, or that it is
  // of a newer program.
  template <typename Decode>
  auto DecodeOne(const char* kind, const std::string& id, Decode decode) -> decltype(decode()) {
    if (options_.focus != nullptr) options_.focus->Set(Focus::Stage::kLoad, kind, id);
    const std::string entity = absl::StrCat(kind, " ", id);
    auto crashing = crashing_.find(entity);
    bool crashes = crashing != crashing_.end() && crashing->second == Focus::Stage::kLoad;
    // What is in the place of a record that is kept apart is a stand-in, which is not to blame.
    if (!crashes || kept_.contains(entity)) return decode();
    return absl::DataLossError(absl::StrCat("reading it has crashed the coordinator ", kCrashesMax, " times or more"));
  }

  absl::Status ReadCrashing() {
    LLM_ASSIGN_OR_RETURN(std::vector<CrashRecord> crashes, ReadCrashes());
    crashing_.clear();
    for (const CrashRecord& crash : crashes) {
      if (crash.count >= kCrashesMax) crashing_.emplace(crash.entity, crash.stage);
    }
    return absl::OkStatus();
  }

  absl::Status ReadJobs(Records& records) {
    std::string id, record;
    soci::statement jobs = (session_.prepare << "SELECT id, record FROM job ORDER BY id", soci::into(id),
                            soci::into(record));
    jobs.execute();
    while (jobs.fetch()) {
      absl::StatusOr<Job> job = DecodeOne("job", id, [&]() { return DecodeJob(JobId(id), record); });
      if (absl::IsFailedPrecondition(job.status())) return job.status();
      if (!job.ok()) {
        std::string why = CannotBeRead(job.status());
        records.damaged.push_back({absl::StrCat("job ", id), record, why});
        job = StandInFor(WhatColumnsSay(id), why, absl::UnixEpoch());
      }
      records.jobs.push_back(*std::move(job));
    }
    return absl::OkStatus();
  }

  // Of a job whose record cannot be read.
  Job WhatColumnsSay(const std::string& id) {
    Job job{.id = JobId(id)};
    std::string phase;
    session_ << "SELECT project, name, phase FROM job WHERE id = :id", soci::use(id), soci::into(job.project),
        soci::into(job.name), soci::into(phase);
    job.phase = JobPhase::kSuspended;
    for (JobPhase end : {JobPhase::kSucceeded, JobPhase::kFailed, JobPhase::kCancelled}) {
      if (phase == JobPhaseName(end)) job.phase = end;
    }
    soci::indicator has_key = soci::i_null;
    session_ << "SELECT MAX(idempotency_key) FROM submission WHERE job = :id", soci::use(id),
        soci::into(job.idempotency_key, has_key);
    long long last_event = 0;
    session_ << "SELECT COALESCE(MAX(sequence), 0) FROM job_event WHERE job = :id", soci::use(id),
        soci::into(last_event);
    job.last_event = last_event;
    job.submit_time = absl::UnixEpoch();
    return job;
  }

  static std::string CannotBeRead(const absl::Status& damage) {
    return absl::StrCat("its stored record cannot be read: ", damage.message());
  }

  absl::Status ReadNodes(Records& records) {
    std::string id, record;
    soci::statement nodes = (session_.prepare << "SELECT id, record FROM node ORDER BY id", soci::into(id),
                             soci::into(record));
    nodes.execute();
    while (nodes.fetch()) {
      absl::StatusOr<Node> node = DecodeOne("node", id, [&]() { return DecodeNode(NodeId(id), record); });
      if (absl::IsFailedPrecondition(node.status())) return node.status();
      if (!node.ok()) {
        std::string why = CannotBeRead(node.status());
        records.damaged.push_back({absl::StrCat("node ", id), record, why});
        node = StandInFor(Node{.id = NodeId(id)}, why);
      }
      records.nodes.push_back(*std::move(node));
    }
    return absl::OkStatus();
  }

  absl::Status ReadDamaged(Records& records) {
    DamagedRecord damaged;
    soci::statement rows = (session_.prepare << "SELECT entity, record, reason FROM damaged ORDER BY entity",
                            soci::into(damaged.entity), soci::into(damaged.record), soci::into(damaged.reason));
    rows.execute();
    kept_.clear();
    while (rows.fetch()) {
      records.damaged_before.push_back(damaged);
      kept_.insert(damaged.entity);
      absl::string_view id = damaged.entity;
      // What crashes is not tried again before an operator says so.
      if (!absl::ConsumePrefix(&id, "job ") || crashing_.contains(damaged.entity)) continue;
      absl::StatusOr<Job> job = DecodeOne("job", std::string(id), [&]() {
        return DecodeJob(JobId(std::string(id)), damaged.record);
      });
      if (job.ok()) records.recovered.push_back(*std::move(job));
    }
    return absl::OkStatus();
  }

  const SqliteOptions options_;
  FileLock lock_;
  soci::session session_;
  std::map<std::string, Focus::Stage> crashing_;  // what has crashed the coordinator too often, and when the last time
  std::set<std::string> kept_;                     // what has a stand-in
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
  absl::StatusOr<std::vector<CrashRecord>> ReadCrashes() override {
    MutexLock lock(mutex_);
    return file_.ReadCrashes();
  }

  absl::Status Backup(const std::string& path) override {
    const std::string database = path + ".db";
    absl::Status copied = CopyTo(database);
    if (copied.ok()) copied = WrapBackup(database, path);
    if (!copied.ok()) {
      ::unlink(database.c_str());
      ::unlink(path.c_str());
    }
    return copied;
  }

 private:
  // The lock is given up between any two steps, for long enough that a commit that waits for it gets it.
  static constexpr std::chrono::milliseconds kBetweenSteps{1};

  absl::Status CopyTo(const std::string& path) {
    std::unique_ptr<PageCopy> copy;
    absl::StatusOr<bool> done = false;
    {
      MutexLock lock(mutex_);
      LLM_ASSIGN_OR_RETURN(copy, file_.BeginCopy(path));
    }
    while (done.ok() && !*done) {
      std::this_thread::sleep_for(kBetweenSteps);
      MutexLock lock(mutex_);
      done = copy->CopySome();
    }
    MutexLock lock(mutex_);
    copy.reset();
    return done.status();
  }

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
