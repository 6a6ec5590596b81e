// The column of signature_kernels.h for AVX-512.
#include "worker/data/dedup/signature_lanes.h"

namespace llmctl::data {

const SignatureKernels kSignatureAvx512 = {"avx512", Update<false, 7>, Update<true, 7>, Shingle};

}  // namespace llmctl::data
