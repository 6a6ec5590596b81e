/* Preloaded by the tuned peer: lets MKL take its AVX-512 kernels on a CPU of another maker. An internal symbol of MKL,
   unsupported: good enough for a comparison, not for a product. */
int mkl_serv_intel_cpu_true(void) { return 1; }
