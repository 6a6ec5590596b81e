// Which instruction set the kernels of this process use.
//
// The best one the CPU has is chosen at run time; one binary runs everywhere. LLM_ISA=avx2 forces the lesser one,
// to compare or to work around a machine. A main reads the environment, once, and passes ParseIsa's answer on.
#pragma once

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace llmctl::engine::kernels {

enum class Isa {
  kBest,    // resolved by ResolveIsa
  kAvx2,    // with FMA; bf16 operands are widened to fp32
  kAvx512,  // F, BW, DQ, VL and BF16
};

// The value of LLM_ISA: "", "best", "avx2" or "avx512", resolved. Unavailable when the CPU lacks it,
// InvalidArgument for another name.
absl::StatusOr<Isa> ParseIsa(absl::string_view name);

// kBest becomes what the CPU has; others stay. Unavailable when the CPU has neither or lacks the one asked for.
absl::StatusOr<Isa> ResolveIsa(Isa isa);

const char* IsaName(Isa isa);

}  // namespace llmctl::engine::kernels
