#include "worker/engine/kernels/lanes_avx2.h"

#include "worker/engine/kernels/attention_blocked.h"
#include "worker/engine/kernels/column.h"
#include "worker/engine/kernels/columns.h"

namespace llmctl::engine::kernels {

constinit const KernelTable<float> kFloatAvx2 =
    MakeColumn<LanesAvx2, float, BlockedAttention<LanesAvx2, float, float>>();
constinit const KernelTable<Bf16> kBf16Avx2 =
    MakeColumn<LanesAvx2, Bf16, BlockedAttention<LanesAvx2, Bf16, float>>();

}  // namespace llmctl::engine::kernels
