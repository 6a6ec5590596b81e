// The sample ledger: which samples the parameters have seen, exactly once each, through every crash, resize and
// rewind. It is part of the training state, so that a claim about data order can be checked rather than believed.
//
// Run-length segments: [first_sample, last_sample] in the order of one sampler, under one generation. Segments
// follow each other without gap or overlap from sample 0 on; skipped samples (a batch whose loss was not finite)
// are inside their segment and listed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace llmctl::checkpoint {

struct SampleRun {
  int64_t first_sample = 0;
  int64_t last_sample = 0;  // inclusive
  bool operator==(const SampleRun&) const = default;
};

struct LedgerSegment {
  std::string sampler_digest;
  int64_t first_sample = 0;
  int64_t last_sample = 0;  // inclusive
  int64_t generation = 0;
  std::vector<SampleRun> skips;  // ascending, disjoint
  bool operator==(const LedgerSegment&) const = default;
};

class Ledger {
 public:
  Ledger() = default;
  // InvalidArgument names the segment that breaks the rules above.
  static absl::Status Check(const std::vector<LedgerSegment>& segments);
  // Needs Check(segments).ok().
  explicit Ledger(std::vector<LedgerSegment> segments) : segments_(std::move(segments)) {}

  // The next `count` > 0 samples were consumed. A segment with the same sampler and generation grows.
  void Append(const std::string& sampler_digest, int64_t generation, int64_t count);
  // The same, but the parameters were not updated with them.
  void AppendSkipped(const std::string& sampler_digest, int64_t generation, int64_t count);

  const std::vector<LedgerSegment>& segments() const { return segments_; }
  // Samples consumed so far, which is the index of the next one.
  int64_t next_sample() const { return segments_.empty() ? 0 : segments_.back().last_sample + 1; }

  bool operator==(const Ledger&) const = default;

 private:
  std::vector<LedgerSegment> segments_;
};

}  // namespace llmctl::checkpoint
