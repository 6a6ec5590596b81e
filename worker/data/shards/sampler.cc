#include "worker/data/shards/sampler.h"

#include <bit>

#include "absl/strings/str_cat.h"

#include "common/base/check.h"
#include "common/base/digest.h"
#include "common/base/rng.h"

namespace llmctl::data {
namespace {

// More than the four that Luby and Rackoff need of ideal round functions; ours are only good mixers.
constexpr int kRounds = 8;

// The finalizer of SplitMix64 (Steele et al. 2014).
uint64_t Mix(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

// A bijection of [0, 4^half_bits) keyed by `key`.
uint64_t Feistel(uint64_t x, int half_bits, const KeyedRandom& key) {
  uint64_t mask = (uint64_t{1} << half_bits) - 1;
  uint64_t left = x >> half_bits, right = x & mask;
  for (int round = 0; round < kRounds; ++round) {
    uint64_t next = left ^ (Mix(right + key.Bits(round)) & mask);
    left = right;
    right = next;
  }
  return left << half_bits | right;
}

}  // namespace

uint64_t Permute(uint64_t i, uint64_t n, uint64_t seed, int64_t epoch) {
  CHECK_LT(i, n);
  if (n == 1) return 0;
  // The smallest even number of bits that holds n - 1: fewer than four tries on average.
  int half_bits = (std::bit_width(n - 1) + 1) / 2;
  KeyedRandom key(seed, absl::StrCat("sampler/epoch/", epoch));
  // Walking the cycle until it is back inside [0, n) keeps it a bijection.
  uint64_t x = i;
  do {
    x = Feistel(x, half_bits, key);
  } while (x >= n);
  return x;
}

int64_t WindowCount(const SamplerSpec& spec) {
  CHECK_GT(spec.sequence_length, 0);
  return spec.tokens > 0 ? (spec.tokens - 1) / spec.sequence_length : 0;
}

int64_t SampleStart(const SamplerSpec& spec, int64_t index) {
  int64_t n = WindowCount(spec);
  CHECK(n > 0 && index >= 0) << "sample " << index << " of " << n << " windows";
  int64_t position = index % n;
  if (spec.shuffle) position = Permute(position, n, spec.seed, index / n);
  return position * spec.sequence_length;
}

std::string SamplerDigest(const SamplerSpec& spec) {
  return Sha256(absl::StrCat("sampler 1 feistel ", kRounds, "\ndataset ", spec.dataset_digest, "\ntokens ", spec.tokens,
                             "\nsequence_length ", spec.sequence_length, "\nseed ", spec.seed, "\nshuffle ",
                             spec.shuffle ? 1 : 0, "\n"));
}

}  // namespace llmctl::data
