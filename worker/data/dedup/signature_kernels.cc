#include "worker/data/dedup/signature_kernels.h"

namespace llmctl::data {

size_t AvailableSignatureKernels(const SignatureKernels* out[3]) {
  size_t count = 0;
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl")) {
    out[count++] = &kSignatureAvx512;
  }
  if (__builtin_cpu_supports("avx2")) out[count++] = &kSignatureAvx2;
  out[count++] = &kSignaturePlain;
  return count;
}

const SignatureKernels& BestSignatureKernels() {
  const SignatureKernels* all[3];
  AvailableSignatureKernels(all);
  return *all[0];
}

}  // namespace llmctl::data
