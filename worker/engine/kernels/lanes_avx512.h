// Sixteen fp32 lanes of AVX-512. Included by table_avx512.cc only.
#pragma once

#include <initializer_list>

#include <immintrin.h>

#include <initializer_list>

#include "worker/engine/kernels/lanes.h"
#include "worker/engine/kernels/number.h"

namespace llmctl::engine::kernels {

struct LanesAvx512 {
  using Scalar = float;
  using Vector = __m512;
  static constexpr int kWidth = 16;

  static __mmask16 Mask(Part p) { return static_cast<__mmask16>((1u << p.count) - 1); }
  static Vector FromBf16(__m256i x) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(x), 16));
  }
  static __m256i ToBf16(Vector v) {
    __m256bh rounded = _mm512_cvtneps_pbh(v);
    __m256i bits;
    __builtin_memcpy(&bits, &rounded, sizeof bits);
    return bits;
  }

  static Vector Load(const float* p, Full) { return _mm512_loadu_ps(p); }
  static Vector Load(const float* p, Part part) { return _mm512_maskz_loadu_ps(Mask(part), p); }
  static Vector Load(const Bf16* p, Full) {
    return FromBf16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  }
  static Vector Load(const Bf16* p, Part part) { return FromBf16(_mm256_maskz_loadu_epi16(Mask(part), p)); }
  static void Store(float* p, Vector v, Full) { _mm512_storeu_ps(p, v); }
  static void Store(float* p, Vector v, Part part) { _mm512_mask_storeu_ps(p, Mask(part), v); }
  static void Store(Bf16* p, Vector v, Full) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), ToBf16(v)); }
  static void Store(Bf16* p, Vector v, Part part) { _mm256_mask_storeu_epi16(p, Mask(part), ToBf16(v)); }

  // out[2 * i] = a[i], out[2 * i + 1] = b[i]; of the two rows only `present` are there, others count as zero.
  static void Interleave(const Bf16* a, const Bf16* b, int64_t present, int64_t columns, Bf16* out) {
    ForLanes<LanesAvx512>(columns, [&](int64_t i, auto lanes) {
      __m512i low = present > 0 ? Words(a + i, lanes) : _mm512_setzero_si512();
      __m512i high = present > 1 ? _mm512_slli_epi32(Words(b + i, lanes), 16) : _mm512_setzero_si512();
      StoreWords(out + 2 * i, _mm512_or_si512(low, high), lanes);
    });
  }

  static Vector Set(float x) { return _mm512_set1_ps(x); }
  static Vector Add(Vector a, Vector b) { return _mm512_add_ps(a, b); }
  static Vector Sub(Vector a, Vector b) { return _mm512_sub_ps(a, b); }
  static Vector Mul(Vector a, Vector b) { return _mm512_mul_ps(a, b); }
  static Vector Div(Vector a, Vector b) { return _mm512_div_ps(a, b); }
  static Vector Max(Vector a, Vector b) { return _mm512_max_ps(a, b); }
  static Vector Sqrt(Vector a) { return _mm512_sqrt_ps(a); }
  static Vector MulAdd(Vector a, Vector b, Vector c) { return _mm512_fmadd_ps(a, b, c); }
  static float Sum(Vector v) { return _mm512_reduce_add_ps(v); }
  static float Largest(Vector v) { return _mm512_reduce_max_ps(v); }

  // 2^t for t = x / ln 2, split in integer and fraction in [-1/2, 1/2]; the polynomial is good to 2e-7.
  // Far negative x (a masked score) gives exactly 0.
  static Vector Exp(Vector x) {
    Vector t = Mul(x, Set(1.44269504f));
    Vector whole = _mm512_roundscale_ps(t, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    Vector f = Sub(t, whole);
    Vector p = Set(1.5403530e-4f);
    for (float c : {1.3333558e-3f, 9.6181291e-3f, 5.5504109e-2f, 2.4022651e-1f, 6.9314718e-1f, 1.f}) {
      p = MulAdd(p, f, Set(c));
    }
    return _mm512_scalef_ps(p, whole);
  }

 private:
  static __m512i Words(const Bf16* p, Full) {
    return _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  }
  static __m512i Words(const Bf16* p, Part part) {
    return _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(Mask(part), p));
  }
  static void StoreWords(Bf16* p, __m512i v, Full) { _mm512_storeu_si512(p, v); }
  static void StoreWords(Bf16* p, __m512i v, Part part) { _mm512_mask_storeu_epi32(p, Mask(part), v); }
};

}  // namespace llmctl::engine::kernels
