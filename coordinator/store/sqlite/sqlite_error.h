// What an error of SQLite means for the caller: wait and try again, or give up (store.h).
#pragma once

#include <soci/soci.h>

#include "absl/status/status.h"

namespace llmctl::store {

absl::StatusCode StatusCodeOf(const soci::soci_error& error);

}  // namespace llmctl::store
