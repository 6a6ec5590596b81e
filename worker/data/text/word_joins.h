// Which neighbouring words become other words: spaCy's special cases among the words of a text.
//
// All places where one of WordSplitter's joins would fit are found; the longest is taken first, then the leftmost, and
// no place that begins or ends in a word of one that was looked at before. A place with white space in it is looked at
// like any other but changes nothing: so does spaCy, whose matcher does not see white space. Joins of one word change
// nothing either, and are left out.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

#include "worker/data/text/word_splitter.h"

namespace llmctl::data {

class WordJoins {
 public:
  // `splitter` must outlive this.
  explicit WordJoins(const WordSplitter& splitter);

  // A number for each word that occurs in a join, from 1 on; 0 for all others.
  int PartOf(absl::string_view word) const;
  // Whether a join begins with these two parts.
  bool MayBegin(int a, int b) const { return pairs_[a * parts_ + b]; }

  struct Place {
    int first;  // index into the parts
    int count;
    int join;   // index into WordSplitter::joins()
  };
  // What to join in `parts`, by place; `glued[i]` says that no white space is between parts i-1 and i.
  std::vector<Place> Find(absl::Span<const int> parts, const std::vector<bool>& glued) const;

 private:
  static constexpr int kNone = -1;

  void AddAllFrom(absl::Span<const int> parts, int first, std::vector<Place>& places) const;

  absl::flat_hash_map<std::string, int> part_of_;
  int parts_ = 0;             // their number and one more
  std::vector<bool> pairs_;   // parts_ x parts_
  // A trie of the joins: (state, part) -> state, from state 0 on.
  absl::flat_hash_map<std::pair<int, int>, int> next_;
  std::vector<int> join_of_;  // by state
};

}  // namespace llmctl::data
