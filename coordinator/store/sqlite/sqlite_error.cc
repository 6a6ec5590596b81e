#include "coordinator/store/sqlite/sqlite_error.h"

#include <soci/sqlite3/soci-sqlite3.h>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"

namespace llmctl::store {
namespace {

struct Meaning {
  int sqlite;
  absl::StatusCode code;
};
constexpr Meaning kMeanings[] = {
    {SQLITE_FULL, absl::StatusCode::kResourceExhausted},
    {SQLITE_IOERR, absl::StatusCode::kUnavailable},
    {SQLITE_BUSY, absl::StatusCode::kUnavailable},
    {SQLITE_LOCKED, absl::StatusCode::kUnavailable},
    {SQLITE_NOMEM, absl::StatusCode::kUnavailable},
    {SQLITE_CANTOPEN, absl::StatusCode::kUnavailable},
    {SQLITE_READONLY, absl::StatusCode::kPermissionDenied},
    {SQLITE_PERM, absl::StatusCode::kPermissionDenied},
    {SQLITE_CORRUPT, absl::StatusCode::kDataLoss},
    {SQLITE_NOTADB, absl::StatusCode::kDataLoss},
};

}  // namespace

absl::StatusCode StatusCodeOf(const soci::soci_error& error) {
  const auto* sqlite = dynamic_cast<const soci::sqlite3_soci_error*>(&error);
  int primary = sqlite != nullptr ? sqlite->result() & 0xff : SQLITE_ERROR;
  for (const Meaning& meaning : kMeanings) {
    if (meaning.sqlite == primary) return meaning.code;
  }
  // Errors of a step come from SOCI without SQLite's code: its text is all there is.
  absl::string_view text = error.what();
  for (const Meaning& meaning : kMeanings) {
    if (absl::StrContains(text, sqlite_api::sqlite3_errstr(meaning.sqlite))) return meaning.code;
  }
  return absl::StatusCode::kInternal;
}

}  // namespace llmctl::store
