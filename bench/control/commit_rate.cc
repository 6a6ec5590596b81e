#include "bench/control/commit_rate.h"

#include <cstdio>
#include <memory>

#include <sqlite3.h>

#include "absl/strings/str_cat.h"

#include "common/base/instant.h"
#include "common/base/status.h"

namespace llmctl::bench {
namespace {

absl::Status ToStatus(sqlite3* file, int code, absl::string_view what) {
  if (code == SQLITE_OK || code == SQLITE_DONE) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(what, ": ", sqlite3_errmsg(file)));
}

// SQLite copies the log into the file, and begins it anew, when it has a thousand pages.
constexpr size_t kLogBytes = 1000 * 4096;

class Records {
 public:
  Records(sqlite3* file, sqlite3_stmt* insert, absl::string_view record)
      : file_(file), insert_(insert, sqlite3_finalize), record_(record) {}

  absl::Status Insert() {
    sqlite3_bind_int64(insert_.get(), 1, ++inserted_);
    sqlite3_bind_text(insert_.get(), 2, record_.data(), static_cast<int>(record_.size()), SQLITE_STATIC);
    LLM_RETURN_IF_ERROR(ToStatus(file_, sqlite3_step(insert_.get()), "commit"));
    sqlite3_reset(insert_.get());
    return absl::OkStatus();
  }

  absl::Status FillLog() {
    LLM_RETURN_IF_ERROR(ToStatus(file_, sqlite3_exec(file_, "BEGIN", nullptr, nullptr, nullptr), "begin"));
    for (size_t bytes = 0; bytes < 2 * kLogBytes; bytes += record_.size()) LLM_RETURN_IF_ERROR(Insert());
    return ToStatus(file_, sqlite3_exec(file_, "COMMIT", nullptr, nullptr, nullptr), "commit");
  }

 private:
  sqlite3* const file_;
  const std::unique_ptr<sqlite3_stmt, int (*)(sqlite3_stmt*)> insert_;
  const absl::string_view record_;
  int64_t inserted_ = 0;
};

absl::StatusOr<double> CommitFor(sqlite3* file, absl::string_view record, absl::Duration time) {
  for (const char* sql : {"PRAGMA locking_mode = EXCLUSIVE", "PRAGMA journal_mode = WAL", "PRAGMA synchronous = FULL",
                          "CREATE TABLE job (number INTEGER PRIMARY KEY, record TEXT NOT NULL)"}) {
    LLM_RETURN_IF_ERROR(ToStatus(file, sqlite3_exec(file, sql, nullptr, nullptr, nullptr), sql));
  }
  sqlite3_stmt* prepared = nullptr;
  int code = sqlite3_prepare_v2(file, "INSERT INTO job VALUES (?, ?)", -1, &prepared, nullptr);
  LLM_RETURN_IF_ERROR(ToStatus(file, code, "prepare"));
  Records records(file, prepared, record);
  LLM_RETURN_IF_ERROR(records.FillLog());
  absl::Duration begin = Now().monotonic;
  absl::Duration spent = absl::ZeroDuration();
  int64_t commits = 0;
  while (spent < time) {
    LLM_RETURN_IF_ERROR(records.Insert());
    ++commits;
    spent = Now().monotonic - begin;
  }
  return static_cast<double>(commits) / absl::ToDoubleSeconds(spent);
}

}  // namespace

absl::StatusOr<double> MeasureCommitsPerSecond(const std::string& directory, absl::string_view record,
                                               absl::Duration time) {
  std::string path = directory + "/commits.db";
  sqlite3* opened = nullptr;
  int code = sqlite3_open(path.c_str(), &opened);
  std::unique_ptr<sqlite3, int (*)(sqlite3*)> file(opened, sqlite3_close);
  LLM_RETURN_IF_ERROR(ToStatus(opened, code, absl::StrCat("open ", path)));
  absl::StatusOr<double> rate = CommitFor(opened, record, time);
  file.reset();
  for (const char* suffix : {"", "-wal", "-shm"}) std::remove((path + suffix).c_str());
  if (!rate.ok()) return Annotate(rate.status(), "measure commits in ", directory);
  return rate;
}

}  // namespace llmctl::bench
