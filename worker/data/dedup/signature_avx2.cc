// The column of signature_kernels.h for AVX2.
#include "worker/data/dedup/signature_lanes.h"

namespace llmctl::data {

const SignatureKernels kSignatureAvx2 = {"avx2", Update<false, 2>, Update<true, 2>, Shingle};

}  // namespace llmctl::data
