// Finds added tokens in text: the leftmost, and of those that begin there the longest, as Hugging Face's library does.
//
// A trie by bytes: a byte that begins no token costs one look at a table. Constant after construction: any thread may
// call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"

namespace llmctl::data {

class AddedTokenFinder {
 public:
  struct Match {
    size_t begin;
    size_t end;
    int32_t id;
  };

  AddedTokenFinder() : begins_(256), id_of_node_(1, -1) {}

  // `content` is not empty.
  void Add(absl::string_view content, int32_t id);

  bool empty() const { return id_of_node_.size() == 1; }

  // The first match that begins at `from` or later.
  absl::optional<Match> Find(absl::string_view text, size_t from) const;

 private:
  static uint64_t Edge(uint32_t node, char byte) { return uint64_t{node} << 8 | static_cast<uint8_t>(byte); }

  std::vector<bool> begins_;  // by byte: whether a token begins with it
  absl::flat_hash_map<uint64_t, uint32_t> children_;
  std::vector<int32_t> id_of_node_;  // -1: no token ends here
};

}  // namespace llmctl::data
