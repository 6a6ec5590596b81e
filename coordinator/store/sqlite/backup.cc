#include "coordinator/store/sqlite/backup.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <utility>

#include <soci/sqlite3/soci-sqlite3.h>

#include "absl/strings/str_cat.h"

#include "common/base/digest.h"
#include "common/base/file.h"
#include "common/base/instant.h"
#include "common/base/status.h"
#include "common/base/unique_fd.h"
#include "coordinator/store/record_fields.h"

namespace llmctl::store {
namespace {

constexpr char kMagic[] = "llmctl-backup";
constexpr int kFormat = 1;
// 256 KiB: copied in less time than a commit takes.
constexpr int kPagesPerStep = 64;
constexpr size_t kBlockBytes = 1 << 20;

sqlite_api::sqlite3* HandleOf(soci::session& session) {
  return static_cast<soci::sqlite3_session_backend*>(session.get_backend())->conn_;
}

class SqlitePageCopy final : public PageCopy {
 public:
  explicit SqlitePageCopy(std::string path) : path_(std::move(path)) {}
  ~SqlitePageCopy() override {
    if (backup_ != nullptr) sqlite_api::sqlite3_backup_finish(backup_);
  }

  absl::Status Open(soci::session& source) {
    ::unlink(path_.c_str());
    try {
      target_.open(soci::sqlite3, absl::StrCat("dbname=\"", path_, "\""));
      // Thrown away if it is not finished, and synced as a whole if it is.
      target_ << "PRAGMA journal_mode = OFF";
      target_ << "PRAGMA synchronous = OFF";
    } catch (const soci::soci_error& error) {
      return absl::UnavailableError(absl::StrCat("create ", path_, ": ", error.what()));
    }
    backup_ = sqlite_api::sqlite3_backup_init(HandleOf(target_), "main", HandleOf(source), "main");
    return backup_ != nullptr ? absl::OkStatus() : Failure("begin the copy to ");
  }

  absl::StatusOr<bool> CopySome() override {
    int result = sqlite_api::sqlite3_backup_step(backup_, kPagesPerStep);
    if (result == SQLITE_OK) return false;
    if (result != SQLITE_DONE) return Failure("copy to ");
    sqlite_api::sqlite3_backup_finish(std::exchange(backup_, nullptr));
    return true;
  }

 private:
  absl::Status Failure(const char* what) {
    int code = sqlite_api::sqlite3_errcode(HandleOf(target_));
    std::string text = absl::StrCat(what, path_, ": ", sqlite_api::sqlite3_errmsg(HandleOf(target_)));
    return (code & 0xff) == SQLITE_FULL ? absl::ResourceExhaustedError(text) : absl::UnavailableError(text);
  }

  const std::string path_;
  soci::session target_;
  sqlite_api::sqlite3_backup* backup_ = nullptr;
};

// Reads what the header says of a copy, and makes sure that it is sound.
absl::Status Inspect(const std::string& database, BackupHeader& header) {
  try {
    soci::session session(soci::sqlite3, absl::StrCat("dbname=\"", database, "\""));
    // As copied it asks for a write-ahead log beside it.
    session << "PRAGMA journal_mode = DELETE";
    std::string sound;
    session << "PRAGMA quick_check(1)", soci::into(sound);
    if (sound != "ok") return absl::DataLossError(absl::StrCat(database, " is damaged: ", sound));
    long long term = 0, revision = 0, jobs = 0;
    session << "PRAGMA user_version", soci::into(header.schema);
    session << "SELECT value FROM counter WHERE name = 'term'", soci::into(term);
    session << "SELECT value FROM counter WHERE name = 'revision'", soci::into(revision);
    session << "SELECT COUNT(*) FROM job", soci::into(jobs);
    header.term = term;
    header.revision = revision;
    header.jobs = jobs;
  } catch (const soci::soci_error& error) {
    return absl::UnavailableError(absl::StrCat("inspect ", database, ": ", error.what()));
  }
  return absl::OkStatus();
}

std::string EncodeHeader(const BackupHeader& header) {
  JsonText json = {{"what", kMagic},
                   {"format", kFormat},
                   {"schema", header.schema},
                   {"term", header.term},
                   {"revision", header.revision},
                   {"jobs", header.jobs},
                   {"time", EncodeTime(header.time)},
                   {"database_bytes", header.database_bytes},
                   {"checksum", header.checksum}};
  std::string text = json.text();
  text.resize(kBackupHeaderBytes - 1, ' ');
  return text + "\n";
}

}  // namespace

absl::StatusOr<std::unique_ptr<PageCopy>> PageCopy::Begin(soci::session& source, const std::string& path) {
  auto copy = std::make_unique<SqlitePageCopy>(path);
  LLM_RETURN_IF_ERROR(copy->Open(source));
  return std::unique_ptr<PageCopy>(std::move(copy));
}

absl::Status WrapBackup(const std::string& database, const std::string& path) {
  BackupHeader header;
  header.time = Now().wall;
  LLM_RETURN_IF_ERROR(Inspect(database, header));
  {
    std::ifstream from(database, std::ios::binary);
    std::ofstream to(path, std::ios::binary | std::ios::trunc);
    to.seekp(kBackupHeaderBytes);
    StreamingChecksum checksum;
    std::string block(kBlockBytes, '\0');
    while (from.read(block.data(), kBlockBytes), from.gcount() > 0) {
      checksum.Add(block.data(), from.gcount());
      to.write(block.data(), from.gcount());
      header.database_bytes += from.gcount();
    }
    header.checksum = checksum.Hex();
    to.seekp(0);
    to << EncodeHeader(header);
    to.close();
    if (from.bad() || !to.good()) return ErrnoStatus(errno == 0 ? EIO : errno, absl::StrCat("write backup ", path));
  }
  UniqueFd written(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!written.valid() || ::fsync(written.get()) != 0) return ErrnoStatus(errno, absl::StrCat("fsync ", path));
  ::unlink(database.c_str());
  return absl::OkStatus();
}

absl::StatusOr<BackupHeader> ReadBackupHeader(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file.is_open()) return ErrnoStatus(errno, absl::StrCat("open backup ", path));
  std::string text(kBackupHeaderBytes, '\0');
  file.read(text.data(), kBackupHeaderBytes);
  FieldReader fields(absl::string_view(text.data(), file.gcount()), absl::StrCat("backup ", path));
  std::string what;
  fields.Read("what", what);
  if (what != kMagic) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " is not a backup: expected a file made by `llmctl admin backup`"));
  }
  BackupHeader header;
  int format = 0;
  fields.Read("format", format);
  fields.Read("schema", header.schema);
  fields.Read("term", header.term);
  fields.Read("revision", header.revision);
  fields.Read("jobs", header.jobs);
  fields.ReadTime("time", header.time);
  fields.Read("database_bytes", header.database_bytes);
  fields.Read("checksum", header.checksum);
  LLM_RETURN_IF_ERROR(fields.status());
  if (format != kFormat) {
    return absl::FailedPreconditionError(absl::StrCat(path, " has backup format ", format, ", this program reads ",
                                                      kFormat, ": restore it with the llm-coordinator that made it"));
  }
  return header;
}

}  // namespace llmctl::store
