// Sampler: which tokens are sample number i? A pure function, so that data order depends on nothing but
// (spec, i): not on ranks, restarts, prefetching or time.
//
// Sample i of a job is position Permute(i mod n) of epoch i / n, where n is the number of whole windows of
// sequence_length + 1 tokens (overlapping by one) in the split, and the permutation is a keyed Feistel network
// with cycle walking (Black and Rogaway 2002), keyed by (seed, epoch).
//
// The index of slot s (0 <= s < global batch) of step t is t * global batch + s: consumed samples are the clock.
#pragma once

#include <cstdint>
#include <string>

namespace llmctl::data {

struct SamplerSpec {
  std::string dataset_digest;
  int64_t tokens = 0;  // of the split
  int sequence_length = 0;
  uint64_t seed = 0;
  bool shuffle = true;  // false: windows in stream order (validation)
};

// Whole windows in the split; 0 if it is too short for one.
int64_t WindowCount(const SamplerSpec& spec);

// First token of sample `index` in the stream. The sample is tokens [start, start + sequence_length + 1):
// inputs are all but the last, targets all but the first. Needs WindowCount(spec) > 0.
int64_t SampleStart(const SamplerSpec& spec, int64_t index);

// Where `i` of [0, n) goes in epoch `epoch`: a bijection of [0, n) for every (n, seed, epoch).
uint64_t Permute(uint64_t i, uint64_t n, uint64_t seed, int64_t epoch);

// Identity of the order: recorded in the sample ledger of every checkpoint.
std::string SamplerDigest(const SamplerSpec& spec);

}  // namespace llmctl::data
