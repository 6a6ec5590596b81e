#include "worker/engine/optim/gradient_buckets.h"

#include <algorithm>

#include "absl/strings/strip.h"
#include "absl/strings/string_view.h"

#include "common/base/check.h"

namespace llmctl::engine {
namespace {

// What all names have in common would only use up the room that a record of the ring has.
std::string ShortName(absl::string_view parameter) {
  absl::ConsumePrefix(&parameter, "model.");
  absl::ConsumeSuffix(&parameter, ".weight");
  return std::string(parameter);
}

}  // namespace

GradientBuckets::GradientBuckets(Model& model, int64_t bucket_elements, comm::Communicator& communicator)
    : gradients_(model.gradients()), communicator_(communicator) {
  const std::vector<Parameter>& parameters = model.parameters();
  int64_t end = model.flat_size();
  Bucket bucket;
  for (size_t i = parameters.size(); i-- > 0;) {
    ++bucket.parameters;
    // The first bucket of the vector also takes whatever lies before the first parameter.
    int64_t begin = i == 0 ? 0 : parameters[i].offset;
    if (end - begin < bucket_elements && i > 0) continue;
    bucket.begin = begin;
    bucket.end = end;
    bucket.last = ShortName(parameters[i].name);
    buckets_.push_back(bucket);
    bucket = Bucket();
    end = begin;
  }
}

void GradientBuckets::Begin() {
  for (Bucket& bucket : buckets_) bucket.missing = bucket.parameters;
  summed_ = 0;
  status_ = absl::OkStatus();
}

GradientBuckets::Bucket& GradientBuckets::Of(const Parameter& parameter) {
  auto it = std::partition_point(buckets_.begin(), buckets_.end(),
                                 [&](const Bucket& bucket) { return bucket.begin > parameter.offset; });
  CHECK(it != buckets_.end() && parameter.offset < it->end) << parameter.name << " lies in no bucket";
  return *it;
}

void GradientBuckets::GradientReady(const Parameter& parameter) {
  Bucket& bucket = Of(parameter);
  CHECK_GT(bucket.missing, 0) << parameter.name << " was reported twice in one pass";
  if (--bucket.missing > 0) return;
  ++summed_;
  if (!status_.ok()) return;
  status_ = communicator_.Collective(
      {kSite, bucket.last}, comm::Axis::kData, comm::Op::kAllReduceSum,
      {gradients_ + bucket.begin, bucket.end - bucket.begin, comm::DataType::kFloat32});
}

absl::Status GradientBuckets::Finish() {
  CHECK_EQ(summed_, bucket_count()) << "the backward pass did not report every parameter";
  return status_;
}

}  // namespace llmctl::engine
