// The signature of a document: the least value of each hash function over its shingles.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

#include "worker/data/dedup/hash_functions.h"
#include "worker/data/dedup/near_settings.h"
#include "worker/data/dedup/shingle_set.h"
#include "worker/data/dedup/shingle_source.h"

namespace llmctl::data {

// Of one document after another; owned by the caller, one per thread.
struct Signature {
  // Whether it has a full shingle. Shorter documents have no signature: they are compared as they are.
  bool full = false;
  int64_t shingles = 0;         // repeated ones counted
  std::vector<uint64_t> least;  // padded: the first bands x rows count
  ShingleSet set;               // only if the settings ask for a Jaccard check
  ShingleScratch scratch;
};

// Const after construction, safe from any thread; about 100 KB, and what `split_words` has.
class Signer {
 public:
  // `split_words` is for the datatrove recipe, which needs words as spaCy's blank English splits them.
  static absl::StatusOr<std::unique_ptr<Signer>> Make(const NearSettings& settings, SplitWords split_words = nullptr);

  const NearSettings& settings() const { return settings_; }

  void Sign(absl::string_view text, Signature& out) const;

  // What two documents must have equal to be candidates by this band.
  uint64_t BandKey(const Signature& signature, int band) const;

 private:
  Signer(const NearSettings& settings, std::unique_ptr<ShingleSource> source, const SignatureKernels& kernels);

  NearSettings settings_;
  HashFunctionTable functions_;
  std::unique_ptr<ShingleSource> source_;
  void (*update_)(const uint64_t*, size_t, const HashFunctions&, uint64_t*);
};

// The share of equal values, an unbiased estimate of the Jaccard similarity: standard deviation
// sqrt(J (1 - J) / hashes), 0.04 at worst for 112 of them.
double EstimateJaccard(absl::Span<const uint64_t> a, absl::Span<const uint64_t> b);

}  // namespace llmctl::data
