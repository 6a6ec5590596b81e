// The two inner loops of MinHash, compiled once per instruction set; the best one the CPU has is chosen at run time.
//
// Same results everywhere: it is arithmetic on 64-bit integers. The values are compared as signed numbers, which every
// instruction set can do; any fixed order serves MinHash, and datatrove's values have 61 bits, so theirs is the same.
#pragma once

#include <cstddef>
#include <cstdint>

namespace llmctl::data {

// Hash functions come in groups of so many; callers pad to a multiple.
constexpr size_t kHashLanes = 8;
// What the least value of no shingle at all is.
constexpr uint64_t kNoShingle = INT64_MAX;

struct HashFunctions {
  const uint64_t* multipliers;
  const uint64_t* addends;
  size_t count;  // a multiple of kHashLanes
};

struct SignatureKernels {
  const char* name;
  // least[j] = min(least[j], multipliers[j] * x + addends[j] mod 2^64) over all x.
  void (*update)(const uint64_t* shingles, size_t count, const HashFunctions& functions, uint64_t* least);
  // The same with the sum mod 2^64, then mod 2^61 - 1, as datatrove has it.
  void (*update_mersenne)(const uint64_t* shingles, size_t count, const HashFunctions& functions, uint64_t* least);
  // shingles[i] = a hash of the `words` word hashes from i on; reads count + words - 1 of them.
  void (*shingle)(const uint64_t* word_hashes, size_t count, size_t words, uint64_t* shingles);
};

extern const SignatureKernels kSignatureAvx512;
extern const SignatureKernels kSignatureAvx2;
extern const SignatureKernels kSignaturePlain;

// The best that this CPU has.
const SignatureKernels& BestSignatureKernels();

// All that this CPU has: tests compare them.
size_t AvailableSignatureKernels(const SignatureKernels* out[3]);

}  // namespace llmctl::data
