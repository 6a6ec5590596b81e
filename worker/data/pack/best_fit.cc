#include "worker/data/pack/best_fit.h"

#include <bit>
#include <cstddef>

#include "common/base/check.h"

namespace llmctl::data {
namespace {

// A set of numbers in [0, size) that finds the next one from a number on: a bit a number, and above 64 of them one.
class NumberSet {
 public:
  explicit NumberSet(size_t size) {
    do {
      size = (size + 63) / 64;
      levels_.emplace_back(size);
    } while (size > 1);
  }

  void Insert(size_t number) {
    for (std::vector<uint64_t>& level : levels_) {
      level[number / 64] |= uint64_t{1} << number % 64;
      number /= 64;
    }
  }

  void Erase(size_t number) {
    for (std::vector<uint64_t>& level : levels_) {
      level[number / 64] &= ~(uint64_t{1} << number % 64);
      if (level[number / 64] != 0) return;
      number /= 64;
    }
  }

  // The least number of the set that is not below `number`; -1 if there is none.
  int64_t NextFrom(size_t number) const {
    for (size_t level = 0; level < levels_.size(); ++level) {
      size_t word = number / 64;
      if (word >= levels_[level].size()) return -1;
      uint64_t bits = levels_[level][word] >> number % 64;
      if (bits != 0) return Descend(level, number + std::countr_zero(bits));
      number = word + 1;
    }
    return -1;
  }

 private:
  int64_t Descend(size_t level, size_t number) const {
    for (; level > 0; --level) number = number * 64 + std::countr_zero(levels_[level - 1][number]);
    return static_cast<int64_t>(number);
  }

  std::vector<std::vector<uint64_t>> levels_;
};

// Rows by the room they have, each bucket a stack.
class OpenRows {
 public:
  explicit OpenRows(int32_t capacity) : capacity_(capacity), heads_(capacity + 1, -1), rooms_(capacity + 1) {}

  int32_t row_count() const { return static_cast<int32_t>(next_.size()); }

  int32_t Place(int32_t length) {
    int64_t room = rooms_.NextFrom(length);
    int32_t row = row_count();
    if (room < 0) {
      next_.push_back(-1);
      room = capacity_;
    } else {
      row = heads_[room];
      heads_[room] = next_[row];
      if (heads_[room] < 0) rooms_.Erase(room);
    }
    Push(row, static_cast<int32_t>(room) - length);
    return row;
  }

 private:
  void Push(int32_t row, int32_t room) {
    if (room == 0) return;
    if (heads_[room] < 0) rooms_.Insert(room);
    next_[row] = heads_[room];
    heads_[room] = row;
  }

  const int32_t capacity_;
  std::vector<int32_t> heads_;  // by room; -1: none
  std::vector<int32_t> next_;   // by row
  NumberSet rooms_;             // of the rows that have some
};

// The numbers of pieces by falling length.
std::vector<int32_t> ByFallingLength(absl::Span<const int32_t> lengths, int32_t capacity) {
  std::vector<int32_t> begins(capacity + 2);
  for (int32_t length : lengths) {
    CHECK(length > 0 && length <= capacity) << length << " in rows of " << capacity;
    ++begins[capacity - length + 1];
  }
  for (size_t i = 1; i < begins.size(); ++i) begins[i] += begins[i - 1];
  std::vector<int32_t> order(lengths.size());
  for (size_t i = 0; i < lengths.size(); ++i) order[begins[capacity - lengths[i]]++] = static_cast<int32_t>(i);
  return order;
}

}  // namespace

BestFit PackBestFitDecreasing(absl::Span<const int32_t> lengths, int32_t capacity) {
  BestFit out;
  out.rows.resize(lengths.size());
  OpenRows open(capacity);
  for (int32_t piece : ByFallingLength(lengths, capacity)) out.rows[piece] = open.Place(lengths[piece]);
  out.row_count = open.row_count();
  return out;
}

}  // namespace llmctl::data
