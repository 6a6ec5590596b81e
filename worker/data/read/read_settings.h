// How input is read: which fields, and what is done with what is not as it should be.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace llmctl::data {

enum class InvalidUtf8Policy { kReplace, kReject };
enum class LoneSurrogatePolicy { kReplace, kReject };
enum class GiantPolicy { kSplit, kReject };
// Either way the good part is kept; kRefuse makes the run fail at its end.
enum class TruncatedPolicy { kRefuse, kAllow };

struct ReadSettings {
  // Paths: names with dots between; a dot or backslash in a name has a backslash before it. `id_field` may be empty.
  std::string text_field = "text";
  std::string id_field = "id";
  InvalidUtf8Policy invalid_utf8 = InvalidUtf8Policy::kReplace;
  LoneSurrogatePolicy lone_surrogates = LoneSurrogatePolicy::kReplace;
  GiantPolicy giant = GiantPolicy::kSplit;
  TruncatedPolicy truncated = TruncatedPolicy::kRefuse;
  // A longer text is split at a line end, or failing that between two characters, or rejected. A line of JSON may
  // be kJsonBytesPerTextByte times as long; a longer one is passed over.
  int64_t document_bytes_max = int64_t{64} << 20;
  int64_t chunk_bytes = int64_t{1} << 20;
  // What a zstd frame may ask for: its decoder needs so much memory. 128 MiB is the limit of the zstd program, too.
  int64_t zstd_window_bytes_max = int64_t{128} << 20;

  // All faults in one message.
  absl::Status Validate() const;
};

// Escapes make JSON longer than its text, and other fields stand beside it.
inline constexpr int64_t kJsonBytesPerTextByte = 2;

}  // namespace llmctl::data
