// Eight fp32 lanes of AVX2 with FMA. Included by table_avx2.cc only.
#pragma once

#include <initializer_list>

#include <immintrin.h>

#include <initializer_list>

#include "worker/engine/kernels/lanes.h"
#include "worker/engine/kernels/number.h"

namespace llmctl::engine::kernels {

struct LanesAvx2 {
  using Scalar = float;
  using Vector = __m256;
  static constexpr int kWidth = 8;

  static __m256i Mask(Part p) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(p.count), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  }
  static Vector FromBf16(__m128i x) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(x), 16));
  }
  // To nearest even; a NaN stays one.
  static __m128i ToBf16(Vector v) {
    __m256i bits = _mm256_castps_si256(v);
    __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    __m256i rounded = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
    __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
    __m256i is_nan = _mm256_castps_si256(_mm256_cmp_ps(v, v, _CMP_UNORD_Q));
    __m256i upper = _mm256_srli_epi32(_mm256_blendv_epi8(rounded, quiet, is_nan), 16);
    return _mm_packus_epi32(_mm256_castsi256_si128(upper), _mm256_extracti128_si256(upper, 1));
  }

  static Vector Load(const float* p, Full) { return _mm256_loadu_ps(p); }
  static Vector Load(const float* p, Part part) { return _mm256_maskload_ps(p, Mask(part)); }
  static Vector Load(const Bf16* p, Full) {
    return FromBf16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  static Vector Load(const Bf16* p, Part part) {
    alignas(16) Bf16 whole[kWidth] = {};
    for (int i = 0; i < part.count; ++i) whole[i] = p[i];
    return Load(whole, Full{});
  }
  static void Store(float* p, Vector v, Full) { _mm256_storeu_ps(p, v); }
  static void Store(float* p, Vector v, Part part) { _mm256_maskstore_ps(p, Mask(part), v); }
  static void Store(Bf16* p, Vector v, Full) { _mm_storeu_si128(reinterpret_cast<__m128i*>(p), ToBf16(v)); }
  static void Store(Bf16* p, Vector v, Part part) {
    alignas(16) Bf16 whole[kWidth];
    Store(whole, v, Full{});
    for (int i = 0; i < part.count; ++i) p[i] = whole[i];
  }

  static Vector Set(float x) { return _mm256_set1_ps(x); }
  static Vector Add(Vector a, Vector b) { return _mm256_add_ps(a, b); }
  static Vector Sub(Vector a, Vector b) { return _mm256_sub_ps(a, b); }
  static Vector Mul(Vector a, Vector b) { return _mm256_mul_ps(a, b); }
  static Vector Div(Vector a, Vector b) { return _mm256_div_ps(a, b); }
  static Vector Max(Vector a, Vector b) { return _mm256_max_ps(a, b); }
  static Vector Sqrt(Vector a) { return _mm256_sqrt_ps(a); }
  static Vector MulAdd(Vector a, Vector b, Vector c) { return _mm256_fmadd_ps(a, b, c); }
  static float Sum(Vector v) {
    __m128 x = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    x = _mm_add_ps(x, _mm_movehl_ps(x, x));
    return _mm_cvtss_f32(_mm_add_ss(x, _mm_movehdup_ps(x)));
  }
  static float Largest(Vector v) {
    __m128 x = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    x = _mm_max_ps(x, _mm_movehl_ps(x, x));
    return _mm_cvtss_f32(_mm_max_ss(x, _mm_movehdup_ps(x)));
  }

  // As LanesAvx512::Exp; 2^whole is built from exponent bits, so the argument is kept in their range.
  static Vector Exp(Vector x) {
    Vector kept = _mm256_max_ps(_mm256_min_ps(x, Set(88.f)), Set(-87.f));
    Vector t = Mul(kept, Set(1.44269504f));
    Vector whole = _mm256_round_ps(t, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    Vector f = Sub(t, whole);
    Vector p = Set(1.5403530e-4f);
    for (float c : {1.3333558e-3f, 9.6181291e-3f, 5.5504109e-2f, 2.4022651e-1f, 6.9314718e-1f, 1.f}) {
      p = MulAdd(p, f, Set(c));
    }
    __m256i exponent = _mm256_slli_epi32(_mm256_add_epi32(_mm256_cvtps_epi32(whole), _mm256_set1_epi32(127)), 23);
    Vector result = Mul(p, _mm256_castsi256_ps(exponent));
    return _mm256_andnot_ps(_mm256_cmp_ps(x, Set(-87.f), _CMP_LT_OQ), result);
  }
};

}  // namespace llmctl::engine::kernels
