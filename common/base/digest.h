// Digests: XXH3 where speed matters and nobody attacks (checksums of files and tensors, keys of generators),
// SHA-256 where a collision could be made on purpose (identity of specs and datasets).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace llmctl {

// XXH3 64-bit; the same for the same bytes on every machine and for ever.
uint64_t Fingerprint64(absl::string_view bytes, uint64_t seed = 0);

// XXH3 128-bit as 32 hex digits.
std::string Checksum128(absl::string_view bytes);

// Checksum128 of bytes that arrive in pieces.
class StreamingChecksum {
 public:
  StreamingChecksum();
  ~StreamingChecksum();
  StreamingChecksum(const StreamingChecksum&) = delete;
  StreamingChecksum& operator=(const StreamingChecksum&) = delete;

  void Add(const void* data, size_t bytes);
  std::string Hex() const;

 private:
  void* state_;  // XXH3_state_t
};

// SHA-256 as 64 hex digits.
std::string Sha256(absl::string_view bytes);

}  // namespace llmctl
