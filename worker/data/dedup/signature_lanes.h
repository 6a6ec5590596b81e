// The bodies of signature_kernels.h, for each of its three sources to compile with its own flags.
//
// Everything here has internal linkage and nothing of the standard library is called: an instantiation shared between
// the sources could be linked in the AVX-512 form and run on a CPU without it.
#pragma once

#include <cstring>

#include "worker/data/dedup/signature_kernels.h"

namespace llmctl::data {
namespace {

using Lanes [[gnu::vector_size(64)]] = uint64_t;
using SignedLanes [[gnu::vector_size(64)]] = int64_t;

constexpr uint64_t kMersenne = (uint64_t{1} << 61) - 1;

// kGroups of eight functions at a time, so that they and their least values stay in registers over all shingles.
template <bool mersenne, size_t groups>
inline void UpdateGroups(const uint64_t* shingles, size_t count, const HashFunctions& functions, size_t first,
                         uint64_t* least) {
  Lanes multiplier[groups], addend[groups], minimum[groups];
  std::memcpy(multiplier, functions.multipliers + first, sizeof multiplier);
  std::memcpy(addend, functions.addends + first, sizeof addend);
  std::memcpy(minimum, least + first, sizeof minimum);
  for (size_t i = 0; i < count; ++i) {
    uint64_t x = shingles[i];
    for (size_t g = 0; g < groups; ++g) {
      Lanes value = multiplier[g] * x + addend[g];
      if constexpr (mersenne) {
        value = (value & kMersenne) + (value >> 61);
        value = value >= kMersenne ? value - kMersenne : value;
      }
      minimum[g] = (SignedLanes)value < (SignedLanes)minimum[g] ? value : minimum[g];
    }
  }
  std::memcpy(least + first, minimum, sizeof minimum);
}

template <bool mersenne, size_t groups>
void Update(const uint64_t* shingles, size_t count, const HashFunctions& functions, uint64_t* least) {
  size_t first = 0;
  for (; first + groups * kHashLanes <= functions.count; first += groups * kHashLanes) {
    UpdateGroups<mersenne, groups>(shingles, count, functions, first, least);
  }
  for (; first < functions.count; first += kHashLanes) {
    UpdateGroups<mersenne, 1>(shingles, count, functions, first, least);
  }
}

// A polynomial over the word hashes, then a finaliser, as the low bits of a polynomial are only as good as theirs.
void Shingle(const uint64_t* word_hashes, size_t count, size_t words, uint64_t* shingles) {
  constexpr uint64_t kBase = 0x9fb21c651e98df25;
  constexpr uint64_t kMix = 0xd6e8feb86659fd93;
  for (size_t i = 0; i < count; ++i) shingles[i] = word_hashes[i];
  for (size_t word = 1; word < words; ++word) {
    for (size_t i = 0; i < count; ++i) shingles[i] = shingles[i] * kBase + word_hashes[i + word];
  }
  for (size_t i = 0; i < count; ++i) {
    uint64_t x = (shingles[i] ^ (shingles[i] >> 32)) * kMix;
    shingles[i] = x ^ (x >> 32);
  }
}

}  // namespace
}  // namespace llmctl::data
