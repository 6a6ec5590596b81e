#include <algorithm>
#include <cstdint>

#include "common/spec/field_defaults.h"
#include "common/spec/validate.h"

namespace llmctl::spec {
namespace {

int32_t DefaultFfnSize(int32_t hidden_size) {
  constexpr int64_t kMultiple = 64;
  int64_t size = (int64_t{8} * hidden_size + 2) / 3;
  return static_cast<int32_t>((size + kMultiple - 1) / kMultiple * kMultiple);
}

}  // namespace

void ApplyDefaults(v1::JobSpec& spec) {
  ApplyFieldDefaults(spec);
  if (spec.has_model()) {
    v1::Model& model = *spec.mutable_model();
    if (model.kv_heads() == 0) model.set_kv_heads(model.heads());
    if (model.ffn_size() == 0) model.set_ffn_size(DefaultFfnSize(model.hidden_size()));
  }
  if (spec.has_training() && !spec.training().schedule().has_warmup_steps()) {
    int64_t warmup = std::min<int64_t>(2000, spec.training().steps() / 10);
    spec.mutable_training()->mutable_schedule()->set_warmup_steps(warmup);
  }
  v1::WorkerCount& workers = *spec.mutable_resources()->mutable_workers();
  if (workers.max() == 0) workers.set_max(workers.min());
}

}  // namespace llmctl::spec
