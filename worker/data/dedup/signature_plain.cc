// The column of signature_kernels.h for any CPU.
#include "worker/data/dedup/signature_lanes.h"

namespace llmctl::data {

const SignatureKernels kSignaturePlain = {"plain", Update<false, 1>, Update<true, 1>, Shingle};

}  // namespace llmctl::data
