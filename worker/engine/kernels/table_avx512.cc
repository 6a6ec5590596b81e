#include "worker/engine/kernels/lanes_avx512.h"

#include "worker/engine/kernels/attention_blocked.h"
#include "worker/engine/kernels/column.h"
#include "worker/engine/kernels/columns.h"

namespace llmctl::engine::kernels {

constinit const KernelTable<float> kFloatAvx512 =
    MakeColumn<LanesAvx512, float, BlockedAttention<LanesAvx512, float, float>>();
constinit const KernelTable<Bf16> kBf16Avx512 =
    MakeColumn<LanesAvx512, Bf16, BlockedAttention<LanesAvx512, Bf16, Bf16>>();

}  // namespace llmctl::engine::kernels
