// GradientBuckets: sums gradients over the data-parallel ranks, a stretch at a time.
//
// The flat gradient vector is cut, from its end, into stretches of whole parameters. As soon as the backward
// pass of the last micro-batch has finished all gradients of a stretch it is summed over the ranks: while its
// cache lines are warm, and in messages big enough for full bandwidth yet small enough to overlap. The cut
// depends on the parameters only and the backward order is the same everywhere, so all ranks call alike.
//
// Single-threaded.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"

#include "worker/engine/comm/collective.h"
#include "worker/engine/models/model.h"

namespace llmctl::engine {

class GradientBuckets : public GradSink {
 public:
  // Site of the collectives.
  static constexpr char kSite[] = "grad.bucket";

  // Buckets hold at least `bucket_elements` (the last one may hold fewer).
  GradientBuckets(Model& model, int64_t bucket_elements, comm::Communicator& communicator);

  // Before the last micro-batch of a step.
  void Begin();
  void GradientReady(const Parameter& parameter) override;
  // After it: all buckets are summed, or the first error.
  absl::Status Finish();

  int64_t bucket_count() const { return static_cast<int64_t>(buckets_.size()); }

 private:
  struct Bucket {
    int64_t begin = 0;
    int64_t end = 0;
    std::string last;  // the parameter whose gradient completes it, as it is shown to people
    int parameters = 0;
    int missing = 0;  // of this pass
  };
  Bucket& Of(const Parameter& parameter);

  float* gradients_;
  comm::Communicator& communicator_;
  std::vector<Bucket> buckets_;  // descending by begin
  int64_t summed_ = 0;           // buckets of this pass
  absl::Status status_;
};

}  // namespace llmctl::engine
