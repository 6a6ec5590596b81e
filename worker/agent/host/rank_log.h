// Reading what a trainer printed, by byte offset of the stream, while the shim rotates it.
//
// Pure functions of a shim directory (file names: worker/contract/shim_config.h). Thread-safe.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace llmctl::agent {

struct LogPiece {
  std::string data;
  int64_t next_offset = 0;
  bool at_end = false;  // of what was written when it was read
};

// `stream` is "stdout" or "stderr". A negative offset counts from the end; one before what is still kept moves up
// to it, one beyond the end gives nothing.
absl::StatusOr<LogPiece> ReadRankLog(const std::string& directory, absl::string_view stream, int64_t offset,
                                     int64_t bytes_max);

// The last bytes of stderr (of stdout, if stderr is empty) as UTF-8: a cut first character is dropped, bytes that
// are none become U+FFFD.
std::string LogTail(const std::string& directory, int64_t bytes_max);

std::string CleanUtf8(absl::string_view bytes);

}  // namespace llmctl::agent
