// Randomness that can be replayed.
//
// SeededRng is a sequential generator (xoshiro256**, Blackman and Vigna 2018) for cores and simulations:
// its state is a value, so it can be stored, copied and compared.
//
// KeyedRandom is a counter-based one (Philox4x32-10, Salmon et al., SC'11): the n-th number under a key is a
// pure function, so initial weights, dropout and shuffles do not depend on who computes them or in what order.
#pragma once

#include <array>
#include <cstdint>

#include "absl/strings/string_view.h"

namespace llmctl {

class SeededRng {
 public:
  explicit SeededRng(uint64_t seed);

  uint64_t Next();
  // Uniform in [0, bound), without modulo bias; bound > 0.
  uint64_t Below(uint64_t bound);
  // Uniform in [0, 1).
  double Uniform();

  bool operator==(const SeededRng&) const = default;

 private:
  std::array<uint64_t, 4> state_;
};

class KeyedRandom {
 public:
  // The key is the seed and a name ("init/model.layers.0.self_attn.q_proj.weight", "dropout", ...).
  KeyedRandom(uint64_t seed, absl::string_view name);

  // Four independent uniform 32-bit words for `counter`.
  std::array<uint32_t, 4> Block(uint64_t counter) const;
  // The `index`-th 64-bit word.
  uint64_t Bits(uint64_t index) const;
  // The `index`-th uniform double in [0, 1).
  double Uniform(uint64_t index) const;
  // The `index`-th standard normal number (Box-Muller on one block).
  double Normal(uint64_t index) const;

 private:
  uint64_t key_;
};

}  // namespace llmctl
