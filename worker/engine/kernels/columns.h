// The columns of the kernel table, each defined in a file that is compiled for its instruction set.
#pragma once

#include "worker/engine/kernels/table.h"

namespace llmctl::engine::kernels {

extern const KernelTable<float> kFloatAvx512;
extern const KernelTable<Bf16> kBf16Avx512;
extern const KernelTable<float> kFloatAvx2;
extern const KernelTable<Bf16> kBf16Avx2;
extern const KernelTable<double> kDoublePlain;

}  // namespace llmctl::engine::kernels
