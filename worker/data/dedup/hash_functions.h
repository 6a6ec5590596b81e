// The hash functions of a signature: multiplier and addend of each.
#pragma once

#include <cstdint>
#include <vector>

#include "worker/data/dedup/near_settings.h"
#include "worker/data/dedup/signature_kernels.h"

namespace llmctl::data {

class HashFunctionTable {
 public:
  // Fast: random odd multipliers and addends of 64 bits. Datatrove: its own, which are numpy's
  // RandomState(seed).randint(1, 2^61 - 1) for all multipliers, then randint(0, 2^61 - 1) for all addends.
  explicit HashFunctionTable(const NearSettings& settings);

  // bands x rows, without the padding.
  int count() const { return count_; }
  size_t padded_count() const { return multipliers_.size(); }
  HashFunctions functions() const { return {multipliers_.data(), addends_.data(), multipliers_.size()}; }

 private:
  int count_;
  // Padded with copies of the last function.
  std::vector<uint64_t> multipliers_;
  std::vector<uint64_t> addends_;
};

}  // namespace llmctl::data
