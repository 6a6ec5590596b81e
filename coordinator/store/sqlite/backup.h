// Copies of a store, and how a store comes back from one.
//
// A backup is one file: a header of kHeaderBytes (a line of JSON, padded), then the SQLite file as it was at one
// moment. The header names schema, term, revision and the checksum of the rest.
//
// The danger of an old state is that it would hand out numbers again that are in use out there: a generation that a
// host already runs, the id of a job whose checkpoints lie on disk. So a restored store begins beyond all of them:
// every counter goes up by kRestoreGap, far more than can have been handed out since the backup was made.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <soci/soci.h>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "coordinator/store/store.h"

namespace llmctl::store {

inline constexpr int64_t kBackupHeaderBytes = 4096;

struct BackupHeader {
  int schema = 0;
  int64_t term = 0;
  int64_t revision = 0;
  int64_t jobs = 0;
  absl::Time time = absl::InfinitePast();
  int64_t database_bytes = 0;
  std::string checksum;  // Checksum128 of the database
};

// Copies a database page by page while its session goes on committing: what is committed meanwhile goes into both.
// All calls are made under the lock that guards the session, and the session outlives the copy.
class PageCopy {
 public:
  static absl::StatusOr<std::unique_ptr<PageCopy>> Begin(soci::session& source, const std::string& path);
  virtual ~PageCopy() = default;
  // True: that was the last of it. Unfinished copies are left as they are.
  virtual absl::StatusOr<bool> CopySome() = 0;
};

// Makes a backup at `path` of the finished copy `database`, which it removes.
absl::Status WrapBackup(const std::string& database, const std::string& path);

// InvalidArgument: not a backup.
absl::StatusOr<BackupHeader> ReadBackupHeader(const std::string& path);

struct RestoreOptions {
  std::string backup;
  std::string path;  // of the store
  bool force = false;  // even if the store has jobs; it is moved aside
};
struct Restored {
  BackupHeader header;
  int64_t term = 0;       // from which the next coordinator goes on
  std::string replaced;   // where the store lies that was there before; empty if there was none
};
// FailedPrecondition: a coordinator runs on the store, it has jobs and `force` was not given, or the backup is of a
// newer schema. DataLoss: the backup is damaged. The store is as it was then.
absl::StatusOr<Restored> RestoreSqliteStore(const RestoreOptions& options);

}  // namespace llmctl::store
