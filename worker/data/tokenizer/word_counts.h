// How often each piece of a text occurs: what BPE is trained on.
//
// Counting is one thread's; several threads count apart and their counts are added up, with the same result.
// Memory: about 40 bytes per distinct piece of up to 15 bytes, 100 and its own bytes per longer one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"

#include "worker/data/tokenizer/piece_key.h"
#include "worker/data/tokenizer/pre_tokenizer.h"

namespace llmctl::data {

class WordCounts {
 public:
  // Of text that is cut by `pattern`, after normalisation form C if `nfc`.
  WordCounts(Pattern pattern, bool nfc) : pre_tokenizer_(pattern), nfc_(nfc) {}

  Pattern pattern() const { return pre_tokenizer_.pattern(); }
  bool nfc() const { return nfc_; }

  void AddText(absl::string_view text);
  // `other` counts by the same pattern.
  void Add(const WordCounts& other);

  size_t distinct() const { return short_.size() + long_.size(); }

  // Calls `visit(absl::string_view word, int64_t count)` for each, in no order.
  template <typename Visit>
  void ForEach(Visit visit) const {
    for (const auto& [key, count] : short_) visit(absl::string_view(key.data(), key.bytes()), count);
    for (const auto& [word, count] : long_) visit(absl::string_view(word), count);
  }

 private:
  using Key = PieceKey<15>;

  struct HashOfKey {
    size_t operator()(const Key& key) const {
      uint64_t hash = key.Hash();
      return hash ^ hash >> 32;  // a flat_hash_map looks at low bits
    }
  };

  PreTokenizer pre_tokenizer_;
  bool nfc_;
  absl::flat_hash_map<Key, int64_t, HashOfKey> short_;
  absl::flat_hash_map<std::string, int64_t> long_;
};

}  // namespace llmctl::data
