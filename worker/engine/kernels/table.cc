#include "worker/engine/kernels/table.h"

#include "worker/engine/kernels/columns.h"

namespace llmctl::engine::kernels {

template <>
const KernelTable<float>& Kernels<float>(Isa isa) {
  return isa == Isa::kAvx512 ? kFloatAvx512 : kFloatAvx2;
}

template <>
const KernelTable<Bf16>& Kernels<Bf16>(Isa isa) {
  return isa == Isa::kAvx512 ? kBf16Avx512 : kBf16Avx2;
}

template <>
const KernelTable<double>& Kernels<double>(Isa) {
  return kDoublePlain;
}

}  // namespace llmctl::engine::kernels
