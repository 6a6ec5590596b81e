// A hash table of n-grams that look-ups enter once and never leave again: 64-byte lines, each a cache line with the
// keys and values of a few n-grams, probed one line after the other.
//
// An n-gram is known by a 64-bit hash of its words (GramKey). Two n-grams of a model with the same hash are seen as
// one given twice when the model is read (with 10^8 n-grams the chance is 3 in 10,000); a look-up takes an n-gram that
// is not there for one that is with a chance of 1 in 10^11 at that size.
//
// Memory: with a back-off weight 16 bytes an n-gram, without 12, in lines that are at most seven tenths full: 23 and 18
// bytes an n-gram.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

#include "common/base/check.h"

namespace llmctl::data {

// The hash of one word starts, of the word before it goes on: a key is made from right to left.
inline uint64_t GramKeyOf(uint64_t word) { return word * 0x9E3779B97F4A7C15u; }
inline uint64_t ExtendGramKey(uint64_t key, uint64_t word_before) {
  key = (key + word_before) * 0xD6E8FEB86659FD93u;
  return key ^ (key >> 32);
}

// What a look-up is for: `log_backoff` is absent in the highest order.
struct GramWithBackoff {
  static constexpr int kPerLine = 4;
  float log_probability;
  float log_backoff;
};

struct GramWithoutBackoff {
  static constexpr int kPerLine = 5;
  float log_probability;
};

template <typename Gram>
class GramTable {
 public:
  explicit GramTable(uint64_t expected = 0) { Allocate(expected); }

  uint64_t size() const { return size_; }
  uint64_t memory_bytes() const { return line_count_ * sizeof(Line); }

  void Prefetch(uint64_t key) const { __builtin_prefetch(&lines_[LineOf(key)]); }

  // Null if it is not there.
  const Gram* Find(uint64_t key) const {
    key = key == 0 ? 1 : key;
    for (uint64_t at = LineOf(key);; at = at + 1 == line_count_ ? 0 : at + 1) {
      const Line& line = lines_[at];
      for (int i = 0; i < Gram::kPerLine; ++i) {
        if (line.keys[i] == key) return &line.grams[i];
      }
      // Lines are filled from the front.
      if (line.keys[Gram::kPerLine - 1] == 0) return nullptr;
    }
  }
  Gram* Find(uint64_t key) { return const_cast<Gram*>(std::as_const(*this).Find(key)); }

  // False if it is there already.
  bool Insert(uint64_t key, const Gram& gram) {
    if (size_ >= capacity_) Grow();
    key = key == 0 ? 1 : key;
    if (!Place(key, gram)) return false;
    ++size_;
    return true;
  }

  template <typename Visitor>
  void ForEach(Visitor visit) {
    for (uint64_t at = 0; at < line_count_; ++at) {
      for (int i = 0; i < Gram::kPerLine && lines_[at].keys[i] != 0; ++i) visit(lines_[at].grams[i]);
    }
  }

 private:
  struct alignas(64) Line {
    uint64_t keys[Gram::kPerLine];  // 0: free
    Gram grams[Gram::kPerLine];
  };
  static_assert(sizeof(Line) == 64);
  struct Free {
    uint64_t unit = alignof(Line);
    void operator()(Line* lines) const { ::operator delete[](lines, std::align_val_t(unit)); }
  };

  // The high bits of a product are the best mixed.
  uint64_t LineOf(uint64_t key) const {
    return static_cast<uint64_t>((static_cast<unsigned __int128>(key * 0x9E3779B97F4A7C15u) * line_count_) >> 64);
  }

  void Allocate(uint64_t expected) {
    capacity_ = std::max<uint64_t>(expected, 16);
    line_count_ = capacity_ * 10 / (7 * Gram::kPerLine) + 2;
    // Look-ups go everywhere: without large pages each would also miss the page tables' cache.
    constexpr uint64_t kLargePage = 2 << 20;
    uint64_t bytes = line_count_ * sizeof(Line);
    const bool large = bytes >= kLargePage;
    const uint64_t unit = large ? kLargePage : alignof(Line);
    bytes = (bytes + unit - 1) / unit * unit;
    lines_.reset(static_cast<Line*>(::operator new[](bytes, std::align_val_t(unit))));
    lines_.get_deleter().unit = unit;
    if (large) ::madvise(lines_.get(), bytes, MADV_HUGEPAGE);
    std::memset(static_cast<void*>(lines_.get()), 0, bytes);
  }

  bool Place(uint64_t key, const Gram& gram) {
    for (uint64_t at = LineOf(key);; at = at + 1 == line_count_ ? 0 : at + 1) {
      Line& line = lines_[at];
      for (int i = 0; i < Gram::kPerLine; ++i) {
        if (line.keys[i] == key) return false;
        if (line.keys[i] != 0) continue;
        line.keys[i] = key;
        line.grams[i] = gram;
        return true;
      }
    }
  }

  void Grow() {
    std::unique_ptr<Line[], Free> old = std::move(lines_);
    const uint64_t old_count = line_count_;
    Allocate(2 * capacity_);
    for (uint64_t at = 0; at < old_count; ++at) {
      const Line& line = old[at];
      for (int i = 0; i < Gram::kPerLine && line.keys[i] != 0; ++i) {
        CHECK(Place(line.keys[i], line.grams[i])) << "a table holds a key once";
      }
    }
  }

  std::unique_ptr<Line[], Free> lines_;
  uint64_t line_count_ = 0;
  uint64_t capacity_ = 0;
  uint64_t size_ = 0;
};

}  // namespace llmctl::data
