#include "worker/data/dedup/hash_functions.h"

#include <array>

#include "common/base/rng.h"

namespace llmctl::data {
namespace {

// The generator behind numpy's RandomState: the Mersenne Twister of Matsumoto and Nishimura (1998), 32 bits, seeded as
// they do, with numpy's way to bounded 64-bit numbers.
class NumpyRandomState {
 public:
  explicit NumpyRandomState(uint32_t seed) {
    state_[0] = seed;
    for (uint32_t i = 1; i < kWords; ++i) {
      state_[i] = 1812433253u * (state_[i - 1] ^ (state_[i - 1] >> 30)) + i;
    }
  }

  // randint(low, 2^61 - 1, dtype=uint64): 61 bits at a time until they are in range.
  uint64_t Below61Bits(uint64_t low) {
    constexpr uint64_t kMask = (uint64_t{1} << 61) - 1;
    while (true) {
      uint64_t high = Next();
      uint64_t value = ((high << 32) | Next()) & kMask;
      if (value <= kMask - 1 - low) return low + value;
    }
  }

 private:
  static constexpr uint32_t kWords = 624;

  uint32_t Next() {
    if (at_ == kWords) Refill();
    uint32_t y = state_[at_++];
    y ^= y >> 11;
    y ^= (y << 7) & 0x9d2c5680u;
    y ^= (y << 15) & 0xefc60000u;
    return y ^ (y >> 18);
  }

  void Refill() {
    for (uint32_t i = 0; i < kWords; ++i) {
      uint32_t y = (state_[i] & 0x80000000u) | (state_[(i + 1) % kWords] & 0x7fffffffu);
      state_[i] = state_[(i + 397) % kWords] ^ (y >> 1) ^ ((y & 1) ? 0x9908b0dfu : 0);
    }
    at_ = 0;
  }

  std::array<uint32_t, kWords> state_;
  uint32_t at_ = kWords;
};

}  // namespace

HashFunctionTable::HashFunctionTable(const NearSettings& settings) : count_(settings.bands * settings.rows) {
  if (settings.recipe == ShingleRecipe::kDatatrove) {
    NumpyRandomState random(static_cast<uint32_t>(settings.seed));
    for (int i = 0; i < count_; ++i) multipliers_.push_back(random.Below61Bits(1));
    for (int i = 0; i < count_; ++i) addends_.push_back(random.Below61Bits(0));
  } else {
    KeyedRandom random(settings.seed, "minhash");
    for (int i = 0; i < count_; ++i) {
      multipliers_.push_back(random.Bits(2 * i) | 1);
      addends_.push_back(random.Bits(2 * i + 1));
    }
  }
  while (multipliers_.size() % kHashLanes != 0) {
    multipliers_.push_back(multipliers_.back());
    addends_.push_back(addends_.back());
  }
}

}  // namespace llmctl::data
