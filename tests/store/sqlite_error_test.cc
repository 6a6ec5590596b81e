#include "coordinator/store/sqlite/sqlite_error.h"

#include <map>
#include <string>

#include <gtest/gtest.h>
#include <soci/sqlite3/soci-sqlite3.h>

#include "absl/strings/str_cat.h"

namespace llmctl::store {
namespace {

// What passes by itself must not end the coordinator, however SOCI tells it.
TEST(SqliteError, MeansTheSameWithSqlitesCodeAndWithItsTextAlone) {
  const std::map<int, absl::StatusCode> meanings = {
      {SQLITE_FULL, absl::StatusCode::kResourceExhausted},     {SQLITE_IOERR, absl::StatusCode::kUnavailable},
      {SQLITE_BUSY, absl::StatusCode::kUnavailable},           {SQLITE_LOCKED, absl::StatusCode::kUnavailable},
      {SQLITE_NOMEM, absl::StatusCode::kUnavailable},          {SQLITE_CANTOPEN, absl::StatusCode::kUnavailable},
      {SQLITE_READONLY, absl::StatusCode::kPermissionDenied},  {SQLITE_PERM, absl::StatusCode::kPermissionDenied},
      {SQLITE_CORRUPT, absl::StatusCode::kDataLoss},           {SQLITE_NOTADB, absl::StatusCode::kDataLoss},
      {SQLITE_CONSTRAINT, absl::StatusCode::kInternal},        {SQLITE_ERROR, absl::StatusCode::kInternal},
  };
  for (const auto& [code, meaning] : meanings) {
    std::string text = absl::StrCat("sqlite3_statement_backend::loadOne: ", sqlite_api::sqlite3_errstr(code));

    EXPECT_EQ(StatusCodeOf(soci::sqlite3_soci_error("step", code)), meaning) << text;
    EXPECT_EQ(StatusCodeOf(soci::soci_error(text)), meaning) << text;
  }
  EXPECT_EQ(StatusCodeOf(soci::sqlite3_soci_error("step", SQLITE_IOERR_FSYNC)), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace llmctl::store
