#include "worker/engine/kernels/isa.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace llmctl::engine::kernels {
namespace {

bool CpuHasAvx2() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }

bool CpuHasAvx512() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512bf16");
}

}  // namespace

absl::StatusOr<Isa> ParseIsa(absl::string_view name) {
  if (name.empty() || name == "best") return ResolveIsa(Isa::kBest);
  if (name == "avx2") return ResolveIsa(Isa::kAvx2);
  if (name == "avx512") return ResolveIsa(Isa::kAvx512);
  return absl::InvalidArgumentError(
      absl::StrCat("LLM_ISA: expected \"best\", \"avx2\" or \"avx512\", found \"", name, "\""));
}

absl::StatusOr<Isa> ResolveIsa(Isa isa) {
  switch (isa) {
    case Isa::kBest:
      if (CpuHasAvx512()) return Isa::kAvx512;
      if (CpuHasAvx2()) return Isa::kAvx2;
      return absl::UnavailableError("choose kernels: this CPU has no AVX2 with FMA, the least that training needs");
    case Isa::kAvx2:
      if (CpuHasAvx2()) return isa;
      return absl::UnavailableError("choose kernels: AVX2 was asked for, but this CPU has no AVX2 with FMA");
    case Isa::kAvx512:
      if (CpuHasAvx512()) return isa;
      return absl::UnavailableError(
          "choose kernels: AVX-512 was asked for, but this CPU lacks F, BW, DQ, VL or BF16 of it; use LLM_ISA=avx2");
  }
  return absl::InternalError("unreachable");
}

const char* IsaName(Isa isa) {
  switch (isa) {
    case Isa::kBest: return "best";
    case Isa::kAvx2: return "avx2";
    case Isa::kAvx512: return "avx512";
  }
  return "";
}

}  // namespace llmctl::engine::kernels
