#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <utility>
#include <vector>

#include <soci/sqlite3/soci-sqlite3.h>

#include "absl/strings/str_cat.h"

#include "common/base/digest.h"
#include "common/base/file.h"
#include "common/base/status.h"
#include "common/base/unique_fd.h"
#include "coordinator/store/record_job.h"
#include "coordinator/store/sqlite/backup.h"
#include "coordinator/store/sqlite/file_lock.h"
#include "coordinator/store/sqlite/migrations.h"

namespace llmctl::store {
namespace {

constexpr size_t kBlockBytes = 1 << 20;

std::string Connection(const std::string& path) { return absl::StrCat("dbname=\"", path, "\""); }

// The database inside the backup, checked against its header.
absl::Status Unwrap(const std::string& backup, const BackupHeader& header, const std::string& database) {
  std::ifstream from(backup, std::ios::binary);
  from.seekg(kBackupHeaderBytes);
  // Of a restore that did not come to its end: SQLite would roll the new database back to the old.
  ::unlink((database + "-journal").c_str());
  std::ofstream to(database, std::ios::binary | std::ios::trunc);
  StreamingChecksum checksum;
  int64_t bytes = 0;
  std::string block(kBlockBytes, '\0');
  while (from.read(block.data(), kBlockBytes), from.gcount() > 0) {
    checksum.Add(block.data(), from.gcount());
    to.write(block.data(), from.gcount());
    bytes += from.gcount();
  }
  to.close();
  if (from.bad() || !to.good()) return ErrnoStatus(errno == 0 ? EIO : errno, absl::StrCat("copy ", backup));
  if (bytes != header.database_bytes || checksum.Hex() != header.checksum) {
    return absl::DataLossError(absl::StrCat(backup, " is damaged: expected ", header.database_bytes,
                                            " bytes with checksum ", header.checksum, ", found ", bytes, " with ",
                                            checksum.Hex(), "; take another backup"));
  }
  return absl::OkStatus();
}

// What is in the place of the store now.
struct Present {
  bool exists = false;
  long long jobs = 0;
  long long term = 0;
};

// Leaves the whole store in its one file: closing the only connection empties the write-ahead log.
Present Look(const std::string& path) {
  Present present;
  std::error_code none;
  present.exists = std::filesystem::exists(path, none);
  if (!present.exists) return present;
  try {
    soci::session session(soci::sqlite3, Connection(path));
    session << "SELECT COUNT(*) FROM job", soci::into(present.jobs);
    session << "SELECT value FROM counter WHERE name = 'term'", soci::into(present.term);
  } catch (const soci::soci_error&) {
    // Too damaged to be read: a reason to restore, but not without a word.
    present.jobs = std::max(present.jobs, 1ll);
  }
  return present;
}

// No generation of a job that may still start one is handed out twice.
void RaiseGenerations(soci::session& session) {
  std::vector<Job> raised;
  std::string id, record;
  soci::statement rows = (session.prepare << "SELECT id, record FROM job", soci::into(id), soci::into(record));
  rows.execute();
  while (rows.fetch()) {
    absl::StatusOr<Job> job = DecodeJob(JobId(id), record);
    // A coordinator keeps apart what it cannot read.
    if (!job.ok() || IsTerminal(job->phase)) continue;
    job->generation_floor = std::max(job->generation_floor, job->last_generation) + kRestoreGap;
    raised.push_back(*std::move(job));
  }
  for (const Job& job : raised) {
    std::string blob = EncodeJob(job);
    session << "UPDATE job SET record = :record WHERE id = :id", soci::use(blob), soci::use(job.id.value());
  }
}

absl::StatusOr<int64_t> RaiseCounters(const std::string& database, const Present& present) {
  long long term = 0;
  try {
    soci::session session(soci::sqlite3, Connection(database));
    session << "SELECT value FROM counter WHERE name = 'term'", soci::into(term);
    term = std::max(term, present.term) + kRestoreGap;
    long long gap = kRestoreGap, revision_gap = 1000 * kRestoreGap;
    session << "BEGIN IMMEDIATE";
    session << "UPDATE counter SET value = :term WHERE name = 'term'", soci::use(term);
    session << "UPDATE counter SET value = value + :gap WHERE name = 'next_job'", soci::use(gap);
    session << "UPDATE counter SET value = value + :gap WHERE name = 'revision'", soci::use(revision_gap);
    RaiseGenerations(session);
    session << "COMMIT";
  } catch (const soci::soci_error& error) {
    return absl::UnavailableError(absl::StrCat("raise the counters of ", database, ": ", error.what()));
  }
  return term;
}

absl::Status Rename(const std::string& from, const std::string& to) {
  if (std::rename(from.c_str(), to.c_str()) == 0) return absl::OkStatus();
  return ErrnoStatus(errno, absl::StrCat("rename ", from, " to ", to));
}

// A name beside the store that nothing has yet.
std::string FreeName(const std::string& path) {
  std::error_code none;
  for (int number = 1;; ++number) {
    std::string name = absl::StrCat(path, ".replaced-", number);
    if (!std::filesystem::exists(name, none)) return name;
  }
}

absl::Status PutInPlace(const std::string& database, const std::string& path, const std::string& aside) {
  UniqueFd file(::open(database.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid() || ::fsync(file.get()) != 0) return ErrnoStatus(errno, absl::StrCat("fsync ", database));
  if (!aside.empty()) {
    LLM_RETURN_IF_ERROR(Rename(path, aside));
    // Only there if the old store could not be read; it is of no use to the new one, and dangerous.
    std::error_code none;
    if (std::filesystem::exists(path + "-wal", none)) LLM_RETURN_IF_ERROR(Rename(path + "-wal", aside + "-wal"));
  }
  LLM_RETURN_IF_ERROR(Rename(database, path));
  return SyncDirectory(std::filesystem::path(path).parent_path().string());
}

}  // namespace

absl::StatusOr<Restored> RestoreSqliteStore(const RestoreOptions& options) {
  Restored restored;
  LLM_ASSIGN_OR_RETURN(restored.header, ReadBackupHeader(options.backup));
  int newest = static_cast<int>(Migrations().size());
  if (restored.header.schema > newest) {
    return absl::FailedPreconditionError(absl::StrCat(options.backup, " has schema ", restored.header.schema,
                                                      ", this program knows schemas up to ", newest,
                                                      ": restore it with the llm-coordinator that made it, or newer"));
  }
  FileLock lock;
  LLM_RETURN_IF_ERROR(lock.Acquire(options.path + ".lock"));
  Present present = Look(options.path);
  if (present.jobs > 0 && !options.force) {
    return absl::FailedPreconditionError(
        absl::StrCat("restore to ", options.path, ": it holds ", present.jobs,
                     " jobs, expected an empty store; with --force it is moved aside, and what was done since the "
                     "backup is forgotten"));
  }
  std::string database = options.path + ".restoring";
  LLM_RETURN_IF_ERROR(Unwrap(options.backup, restored.header, database));
  LLM_ASSIGN_OR_RETURN(restored.term, RaiseCounters(database, present));
  if (present.exists) restored.replaced = FreeName(options.path);
  LLM_RETURN_IF_ERROR(PutInPlace(database, options.path, restored.replaced));
  return restored;
}

}  // namespace llmctl::store
