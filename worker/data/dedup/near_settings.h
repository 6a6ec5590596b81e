// What near deduplication is asked to do, and what that means before it starts.
//
// MinHash-LSH: a document is the set of its shingles (5 consecutive words), a signature holds the least value of each
// of bands x rows hash functions over that set, and two documents are candidates when all rows of a band agree. Two
// documents of Jaccard similarity s meet with probability 1 - (1 - s^rows)^bands, which rises steeply around
// (1/bands)^(1/rows). Swapping the two numbers is the classic mistake, so both figures are printed at the start.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"

namespace llmctl::data {

enum class ShingleRecipe {
  kFast,       // word_hasher.h: one pass over the text, hashes of words instead of words
  kDatatrove,  // datatrove_shingles.h: signatures equal to datatrove's bit by bit
};

struct NearSettings {
  ShingleRecipe recipe = ShingleRecipe::kFast;
  int bands = 14;
  int rows = 8;
  int shingle_words = 5;
  uint64_t seed = 1;
  // Candidates below it are no duplicates: their shingles are compared. Costs 4 bytes of disk per shingle.
  std::optional<double> jaccard_min;

  bool operator==(const NearSettings&) const = default;
};

// All faults in one message.
absl::Status Validate(const NearSettings& settings);

// The similarity at which a pair is about as likely to be found as not: (1/bands)^(1/rows).
double Threshold(const NearSettings& settings);

// How likely two documents of this similarity share a band.
double DetectionProbability(const NearSettings& settings, double jaccard);

// One line for the start of a run: recipe, bands and rows, threshold and P(0.8).
std::string Describe(const NearSettings& settings);

// What a signature depends on, and what the clusters depend on besides: parts of the digests of intermediate files.
std::string SignatureText(const NearSettings& settings);
std::string ClusterText(const NearSettings& settings);

}  // namespace llmctl::data
