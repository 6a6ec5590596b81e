// The store in one SQLite file: the coordinator of one machine.
//
// WAL with synchronous=FULL: a commit is one append and one fsync. The file is held exclusively (SQLite's
// locking_mode, and a lock file beside it that says who holds it), so the term needs no other guard here; it is
// checked in each commit all the same, for every backend obeys one rule.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"

#include "coordinator/store/store.h"

namespace llmctl::store {

struct SqliteOptions {
  std::string path;
  // The file grows to at most this many pages of 4 KiB, as if the disk were full then; 0: to the disk's end.
  int pages_max = 0;
  // A registered sqlite3_vfs that the file is on, and that nobody else has; empty: the system's.
  std::string vfs;
  // Told which record is being read, by Load(); may be null.
  Focus* focus = nullptr;
};

// Creates the file or brings its schema up to date. FailedPrecondition: another process has it open (and its
// pid), or a newer program wrote its schema.
absl::StatusOr<std::unique_ptr<Store>> OpenSqliteStore(const SqliteOptions& options);

}  // namespace llmctl::store
