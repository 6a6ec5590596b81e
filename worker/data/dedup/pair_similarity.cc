#include "worker/data/dedup/pair_similarity.h"

#include "common/base/status.h"
#include "worker/data/dedup/shingle_set.h"
#include "worker/data/dedup/sketch.h"

namespace llmctl::data {

absl::StatusOr<double> PairSimilarity::Of(uint64_t first, uint64_t second) {
  bool fresh = first != first_;
  first_ = first;
  return exact_ ? Exact(second, fresh) : Estimated(second, fresh);
}

absl::StatusOr<double> PairSimilarity::Exact(uint64_t second, bool fresh) {
  if (fresh) LLM_RETURN_IF_ERROR(parts_.ReadShingles(first_, shingles_));
  LLM_RETURN_IF_ERROR(parts_.ReadShingles(second, other_shingles_));
  return JaccardOf(shingles_, other_shingles_);
}

absl::StatusOr<double> PairSimilarity::Estimated(uint64_t second, bool fresh) {
  if (fresh) LLM_RETURN_IF_ERROR(parts_.ReadSketch(first_, sketch_));
  LLM_RETURN_IF_ERROR(parts_.ReadSketch(second, other_sketch_));
  if (!SketchHasSignature(sketch_) && !SketchHasSignature(other_sketch_)) return 1;
  return EstimateSketchJaccard(sketch_, other_sketch_);
}

}  // namespace llmctl::data
