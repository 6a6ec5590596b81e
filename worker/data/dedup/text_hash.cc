#include "worker/data/dedup/text_hash.h"

#include <xxhash.h>

namespace llmctl::data {

TextHash HashText(absl::string_view text) {
  XXH128_hash_t hash = XXH3_128bits(text.data(), text.size());
  return {hash.high64, hash.low64};
}

}  // namespace llmctl::data
