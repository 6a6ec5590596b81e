// A set of documents with a dense numbering of its members: a bit per document there is, and an eighth more to count.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

namespace llmctl::data {

class DocumentSet {
 public:
  explicit DocumentSet(uint64_t documents) : words_(documents / 64 + 1) {}

  void Insert(uint64_t document) { words_[document / 64] |= uint64_t{1} << (document % 64); }

  // After the last Insert, before the first of what follows. Returns the number of members.
  uint64_t Number() {
    ranks_.clear();
    uint64_t members = 0;
    for (size_t i = 0; i < words_.size(); ++i) {
      if (i % kWordsPerRank == 0) ranks_.push_back(members);
      members += std::popcount(words_[i]);
    }
    return members;
  }

  // How many members are less than it: the number of a member.
  uint64_t NumberOf(uint64_t document) const {
    size_t word = document / 64;
    uint64_t number = ranks_[word / kWordsPerRank];
    for (size_t i = word - word % kWordsPerRank; i < word; ++i) number += std::popcount(words_[i]);
    return number + std::popcount(words_[word] & ((uint64_t{1} << (document % 64)) - 1));
  }

  // The member of that number.
  uint64_t MemberAt(uint64_t number) const {
    size_t rank = std::upper_bound(ranks_.begin(), ranks_.end(), number) - ranks_.begin() - 1;
    uint64_t left = number - ranks_[rank];
    size_t word = rank * kWordsPerRank;
    while (uint64_t(std::popcount(words_[word])) <= left) left -= std::popcount(words_[word++]);
    uint64_t bits = words_[word];
    for (; left > 0; --left) bits &= bits - 1;
    return uint64_t{word} * 64 + std::countr_zero(bits);
  }

  // The least member from `document` on; the number of documents, rounded up, if there is none.
  uint64_t Next(uint64_t document) const {
    size_t word = document / 64;
    if (word >= words_.size()) return words_.size() * 64;
    uint64_t bits = words_[word] & (~uint64_t{0} << (document % 64));
    while (bits == 0) {
      if (++word == words_.size()) return words_.size() * 64;
      bits = words_[word];
    }
    return word * 64 + std::countr_zero(bits);
  }

  static uint64_t BytesFor(uint64_t documents) { return (documents / 64 + 1) * 9; }

 private:
  static constexpr size_t kWordsPerRank = 8;

  std::vector<uint64_t> words_;
  std::vector<uint64_t> ranks_;
};

}  // namespace llmctl::data
