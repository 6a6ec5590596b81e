#include "common/base/rng.h"

#include <cmath>
#include <numbers>

#include "common/base/check.h"
#include "common/base/digest.h"

namespace llmctl {
namespace {

// SplitMix64 (Steele et al. 2014): spreads one seed over a generator's state.
uint64_t SplitMix(uint64_t& x) {
  uint64_t z = (x += 0x9e3779b97f4a7c15ull);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

uint64_t RotateLeft(uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }

// 53 random bits as a double in [0, 1).
double ToUnit(uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1.0p-53; }

}  // namespace

SeededRng::SeededRng(uint64_t seed) {
  for (uint64_t& word : state_) word = SplitMix(seed);
}

uint64_t SeededRng::Next() {
  uint64_t result = RotateLeft(state_[1] * 5, 7) * 9;
  uint64_t t = state_[1] << 17;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= t;
  state_[3] = RotateLeft(state_[3], 45);
  return result;
}

uint64_t SeededRng::Below(uint64_t bound) {
  CHECK_GT(bound, 0u);
  // Reject the few values that would make small results more likely.
  uint64_t threshold = -bound % bound;
  uint64_t x = Next();
  while (x < threshold) x = Next();
  return x % bound;
}

double SeededRng::Uniform() { return ToUnit(Next()); }

KeyedRandom::KeyedRandom(uint64_t seed, absl::string_view name) : key_(Fingerprint64(name, seed)) {}

std::array<uint32_t, 4> KeyedRandom::Block(uint64_t counter) const {
  std::array<uint32_t, 4> c = {static_cast<uint32_t>(counter), static_cast<uint32_t>(counter >> 32), 0, 0};
  uint32_t k0 = static_cast<uint32_t>(key_), k1 = static_cast<uint32_t>(key_ >> 32);
  for (int round = 0; round < 10; ++round) {
    uint64_t p0 = uint64_t{0xD2511F53u} * c[0], p1 = uint64_t{0xCD9E8D57u} * c[2];
    c = {static_cast<uint32_t>(p1 >> 32) ^ c[1] ^ k0, static_cast<uint32_t>(p1),
         static_cast<uint32_t>(p0 >> 32) ^ c[3] ^ k1, static_cast<uint32_t>(p0)};
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return c;
}

uint64_t KeyedRandom::Bits(uint64_t index) const {
  std::array<uint32_t, 4> block = Block(index / 2);
  int at = index % 2 == 0 ? 0 : 2;
  return uint64_t{block[at + 1]} << 32 | block[at];
}

double KeyedRandom::Uniform(uint64_t index) const { return ToUnit(Bits(index)); }

double KeyedRandom::Normal(uint64_t index) const {
  std::array<uint32_t, 4> block = Block(index / 2);
  // (0, 1], so that the logarithm is finite.
  double u = 1.0 - ToUnit(uint64_t{block[1]} << 32 | block[0]);
  double angle = 2 * std::numbers::pi * ToUnit(uint64_t{block[3]} << 32 | block[2]);
  double radius = std::sqrt(-2 * std::log(u));
  return index % 2 == 0 ? radius * std::cos(angle) : radius * std::sin(angle);
}

}  // namespace llmctl
