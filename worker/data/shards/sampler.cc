#include "worker/data/shards/sampler.h"

#include <bit>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "common/base/check.h"
#include "common/base/digest.h"
#include "common/base/rng.h"
#include "common/base/status.h"

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

// Windows in `span` tokens or rows.
int64_t WindowsIn(const SamplerSpec& spec, int64_t span) {
  if (spec.rows > 0) return span;
  return span > 0 ? (span - 1) / spec.sequence_length : 0;
}

// Weights are shares of tokens. Windows of the stream are all as long; rows have what is in them, so that a group of
// emptier rows needs more of them.
std::vector<double> WindowWeights(const SamplerSpec& spec) {
  std::vector<double> weights;
  for (const SampledGroup& group : spec.groups) {
    bool uneven = spec.rows > 0 && group.tokens > 0;
    double scale = uneven ? static_cast<double>(group.end - group.begin) / static_cast<double>(group.tokens) : 1;
    weights.push_back(group.weight * scale);
  }
  return weights;
}

}  // namespace

uint64_t Permute(uint64_t i, uint64_t n, uint64_t seed, int64_t epoch, const std::string& group) {
  CHECK_LT(i, n);
  if (n == 1) return 0;
  // The smallest even number of bits that holds n - 1: fewer than four tries on average.
  int half_bits = (std::bit_width(n - 1) + 1) / 2;
  KeyedRandom key(seed, group.empty() ? absl::StrCat("sampler/epoch/", epoch)
                                      : absl::StrCat("sampler/group/", group, "/epoch/", epoch));
  // Walking the cycle until it is back inside [0, n) keeps it a bijection.
  uint64_t x = i;
  do {
    x = Feistel(x, half_bits, key);
  } while (x >= n);
  return x;
}

absl::StatusOr<SamplerSpec> MakeSamplerSpec(const DatasetManifest& manifest, const SplitInfo& split,
                                            const std::string& dataset_digest, int sequence_length) {
  if (manifest.packing.has_value() && manifest.packing->row_tokens != sequence_length + 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the dataset is packed for sequences of ", manifest.packing->row_tokens - 1, " tokens, sequence_length is ",
        sequence_length, "; set it to ", manifest.packing->row_tokens - 1, ", or pack the dataset anew"));
  }
  SamplerSpec spec{.dataset_digest = dataset_digest, .tokens = split.tokens, .sequence_length = sequence_length};
  if (split.packed.has_value()) spec.rows = split.packed->rows;
  for (const GroupInfo& group : split.groups) {
    spec.groups.push_back({group.name, group.begin, group.end, group.tokens, group.weight});
  }
  return spec;
}

int64_t WindowCount(const SamplerSpec& spec) {
  CHECK_GT(spec.sequence_length, 0);
  if (spec.groups.empty()) return WindowsIn(spec, spec.rows > 0 ? spec.rows : spec.tokens);
  int64_t windows = 0;
  for (const SampledGroup& group : spec.groups) windows += WindowsIn(spec, group.end - group.begin);
  return windows;
}

absl::StatusOr<Sampler> Sampler::Create(SamplerSpec spec) {
  if (WindowCount(spec) == 0) {
    return absl::InvalidArgumentError(absl::StrCat("the split has ", spec.tokens,
                                                   " tokens, which is less than one sample of ", spec.sequence_length,
                                                   " + 1; shorten sequence_length or add text"));
  }
  for (const SampledGroup& group : spec.groups) {
    if (!(group.weight > 0) || WindowsIn(spec, group.end - group.begin) > 0) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "group ", group.name, " has a weight of ", group.weight, " and ", group.tokens,
        " tokens, less than one sample of ", spec.sequence_length, " + 1; give it no weight or add text"));
  }
  GroupSchedule schedule;
  if (!spec.groups.empty()) {
    LLM_ASSIGN_OR_RETURN(schedule, GroupSchedule::Create(WindowWeights(spec)));
  }
  return Sampler(std::move(spec), std::move(schedule));
}

Sampler::Sampler(SamplerSpec spec, GroupSchedule schedule)
    : spec_(std::move(spec)), schedule_(std::move(schedule)), windows_(WindowCount(spec_)) {}

int64_t Sampler::Start(int64_t index) const {
  CHECK_GE(index, 0);
  const int64_t stride = spec_.rows > 0 ? 1 : spec_.sequence_length;
  int64_t n = windows_, begin = 0;
  std::string name;
  if (!spec_.groups.empty()) {
    GroupSchedule::Turn turn = schedule_.At(index);
    const SampledGroup& group = spec_.groups[turn.group];
    index = turn.index;
    n = WindowsIn(spec_, group.end - group.begin);
    begin = group.begin;
    name = group.name;
  }
  int64_t position = index % n;
  if (spec_.shuffle) position = Permute(position, n, spec_.seed, index / n, name);
  return begin + position * stride;
}

std::string SamplerDigest(const SamplerSpec& spec) {
  std::string text = absl::StrCat("sampler 1 feistel ", kRounds, "\ndataset ", spec.dataset_digest, "\ntokens ",
                                  spec.tokens, "\nsequence_length ", spec.sequence_length, "\nseed ", spec.seed,
                                  "\nshuffle ", spec.shuffle ? 1 : 0, "\n");
  // Absent where the order is that of a dataset without rows and groups.
  if (spec.rows > 0) absl::StrAppend(&text, "rows ", spec.rows, "\n");
  for (const SampledGroup& group : spec.groups) {
    absl::StrAppend(&text, "group ", group.begin, " ", group.end, " ", group.tokens, " ",
                    absl::StrFormat("%.17g", group.weight), " ", group.name, "\n");
  }
  return Sha256(text);
}

}  // namespace llmctl::data
