// Sets that grow by being joined; the least member stands for its set.
#pragma once

#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

namespace llmctl::data {

// Index is wide enough for the members: 4 bytes a member up to 2^32 of them.
template <typename Index>
class UnionFind {
 public:
  explicit UnionFind(uint64_t members) : parents_(members) { std::iota(parents_.begin(), parents_.end(), Index{0}); }

  // The least member of the set of `member`. Paths are halved on the way.
  Index Find(Index member) {
    while (parents_[member] != member) {
      parents_[member] = parents_[parents_[member]];
      member = parents_[member];
    }
    return member;
  }

  void Join(Index a, Index b) {
    a = Find(a);
    b = Find(b);
    if (a > b) std::swap(a, b);
    parents_[b] = a;
  }

 private:
  std::vector<Index> parents_;
};

}  // namespace llmctl::data
