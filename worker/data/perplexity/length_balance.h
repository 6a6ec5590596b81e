// Length balancing: keep documents so that their tokens are spread over buckets of length as wished.
//
//   LengthHistogram    documents and tokens by bucket, mergeable; made in a first pass
//   PlanLengths        histogram, settings -> how often a document of each bucket is taken; pure
//   CopiesOf           plan, key, document -> 0, 1 or more copies; a keyed hash of the document's id decides, so that
//                      neither order nor workers matter
//
// A bucket with T tokens and weight w (of weights that sum to 1) is taken at the rate S w / T, where S is the total
// that is aimed at. No rate is above repeat_max. Without `tokens_target` S is the greatest at which every bucket gets
// its share in full: the scarcest bucket decides. With it, a bucket that cannot give its share gives all it has
// (repeat_max times), and the others make up for it in proportion to their weights: as close to the wish as documents
// allow.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace llmctl::data {

struct LengthBalanceSettings {
  // Lengths in tokens, rising: bucket i has those from edges[i-1] on and below edges[i]; one bucket more than edges.
  std::vector<uint64_t> edges;
  std::vector<double> weights;  // one for each bucket; they need not sum to 1. A bucket of weight 0 is dropped
  double repeat_max = 1;        // copies of a document on average; 1: down-sampling only
  std::optional<uint64_t> tokens_target;

  // All faults in one message.
  absl::Status Validate() const;
};

struct LengthHistogram {
  explicit LengthHistogram(const LengthBalanceSettings& settings)
      : documents(settings.edges.size() + 1), tokens(settings.edges.size() + 1) {}

  void Add(const LengthBalanceSettings& settings, uint64_t document_tokens);
  // Of the same buckets.
  void Merge(const LengthHistogram& other);

  std::vector<uint64_t> documents;  // by bucket
  std::vector<uint64_t> tokens;
};

size_t LengthBucketOf(const LengthBalanceSettings& settings, uint64_t document_tokens);

struct LengthRate {
  double rate = 0;      // copies of a document on average
  uint32_t copies = 0;  // every document has so many,
  uint64_t more = 0;    // and one more if its hash is below; of 2^64
};

struct LengthPlan {
  std::vector<LengthRate> rates;  // by bucket
  double tokens_expected = 0;     // in all
  std::vector<double> shares;     // of tokens, by bucket, as expected
  std::vector<size_t> short_of;   // buckets with weight that cannot give their share: empty, or at their cap
};

// InvalidArgument if the histogram has other buckets. FailedPrecondition if no bucket with weight has a token.
absl::StatusOr<LengthPlan> PlanLengths(const LengthHistogram& histogram, const LengthBalanceSettings& settings);

// Of a document with this id in this bucket. Another key draws again.
uint32_t CopiesOf(const LengthPlan& plan, uint64_t key, size_t bucket, absl::string_view id);

}  // namespace llmctl::data
