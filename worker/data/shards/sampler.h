// Sampler: which tokens are sample number i? A pure function, so that data order depends on nothing but
// (spec, i): not on ranks, restarts, prefetching or time.
//
// A window is what one sample sees: in concat mode sequence_length + 1 tokens of the stream, overlapping by one; in
// packed mode a row. Sample i is window Permute(i mod n) of epoch i / n, where the permutation is a keyed Feistel
// network with cycle walking (Black and Rogaway 2002), keyed by (seed, epoch).
//
// With groups, sample i is the k-th of its group g, and that is window Permute(k mod n_g) of epoch k / n_g of the
// group, keyed by its name too. Which group comes when is a schedule (GroupSchedule) that keeps to the weights: of the
// first n samples, for every n, a group of weight w has either floor(n w) or ceil(n w).
//
// The index of slot s (0 <= s < global batch) of step t is t * global batch + s: consumed samples are the clock.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "worker/data/shards/dataset.h"
#include "worker/data/shards/group_schedule.h"

namespace llmctl::data {

struct SampledGroup {
  std::string name;
  int64_t begin = 0;  // concat: tokens; packed: rows
  int64_t end = 0;
  int64_t tokens = 0;
  double weight = 0;  // share of tokens; what a job says goes here, before the sampler is made
};

struct SamplerSpec {
  std::string dataset_digest;
  int64_t tokens = 0;  // of the split
  int sequence_length = 0;
  uint64_t seed = 0;
  bool shuffle = true;  // false: windows in stream order (validation)
  int64_t rows = 0;     // of a packed split; 0: concat
  std::vector<SampledGroup> groups;  // empty: the split is one
};

// Of a split as it was prepared. InvalidArgument if it is packed for another sequence length.
absl::StatusOr<SamplerSpec> MakeSamplerSpec(const DatasetManifest& manifest, const SplitInfo& split,
                                            const std::string& dataset_digest, int sequence_length);

// Whole windows in the split; 0 if it is too short for one. Those of groups do not reach over their ends.
int64_t WindowCount(const SamplerSpec& spec);

class Sampler {
 public:
  // InvalidArgument if there is no window, or a group that has a weight has none.
  static absl::StatusOr<Sampler> Create(SamplerSpec spec);

  const SamplerSpec& spec() const { return spec_; }
  int64_t windows() const { return windows_; }
  // Concat: the first token of sample `index`, which is tokens [start, start + sequence_length + 1) of the stream.
  // Packed: its row.
  int64_t Start(int64_t index) const;

 private:
  Sampler(SamplerSpec spec, GroupSchedule schedule);

  SamplerSpec spec_;
  GroupSchedule schedule_;  // empty without groups
  int64_t windows_;
};

// Where `i` of [0, n) goes in epoch `epoch`: a bijection of [0, n) for every (n, seed, epoch, group).
uint64_t Permute(uint64_t i, uint64_t n, uint64_t seed, int64_t epoch, const std::string& group = "");

// Identity of the order: recorded in the sample ledger of every checkpoint.
std::string SamplerDigest(const SamplerSpec& spec);

}  // namespace llmctl::data
