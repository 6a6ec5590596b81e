#include "common/base/digest.h"

#include <openssl/sha.h>
#include <xxhash.h>

#include "absl/strings/escaping.h"
#include "absl/strings/str_format.h"

namespace llmctl {
namespace {

std::string Hex128(XXH128_hash_t h) { return absl::StrFormat("%016x%016x", h.high64, h.low64); }

}  // namespace

uint64_t Fingerprint64(absl::string_view bytes, uint64_t seed) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

std::string Checksum128(absl::string_view bytes) { return Hex128(XXH3_128bits(bytes.data(), bytes.size())); }

StreamingChecksum::StreamingChecksum() : state_(XXH3_createState()) {
  XXH3_128bits_reset(static_cast<XXH3_state_t*>(state_));
}
StreamingChecksum::~StreamingChecksum() { XXH3_freeState(static_cast<XXH3_state_t*>(state_)); }
void StreamingChecksum::Add(const void* data, size_t bytes) {
  XXH3_128bits_update(static_cast<XXH3_state_t*>(state_), data, bytes);
}
std::string StreamingChecksum::Hex() const {
  return Hex128(XXH3_128bits_digest(static_cast<const XXH3_state_t*>(state_)));
}

std::string Sha256(absl::string_view bytes) {
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), digest);
  return absl::BytesToHexString({reinterpret_cast<const char*>(digest), sizeof digest});
}

}  // namespace llmctl
