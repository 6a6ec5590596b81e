// Causal attention in fp64, as the formulas say it: the reference for the blocked kernels.
#pragma once

#include <cmath>
#include <cstdint>

#include "worker/engine/kernels/table.h"

namespace llmctl::engine::kernels {

class PlainAttention {
 public:
  static void Forward(const AttentionForward<double>& k) {
    const AttentionShape& s = k.shape;
    for (int64_t sample = 0; sample < s.samples; ++sample) {
      for (int64_t head = 0; head < s.heads; ++head) {
        for (int64_t i = 0; i < s.sequence_length; ++i) ForwardRow(k, sample, head, i);
      }
    }
  }

  static void Backward(const AttentionBackward<double>& k) {
    const AttentionShape& s = k.shape;
    int64_t count = s.samples * s.sequence_length * s.qkv_pitch();
    for (int64_t i = 0; i < count; ++i) k.d_qkv[i] = 0;
    for (int64_t sample = 0; sample < s.samples; ++sample) {
      for (int64_t head = 0; head < s.heads; ++head) {
        for (int64_t i = 0; i < s.sequence_length; ++i) BackwardRow(k, sample, head, i);
      }
    }
  }

 private:
  static int64_t Row(const AttentionShape& s, int64_t sample, int64_t position) {
    return (sample * s.sequence_length + position) * s.qkv_pitch();
  }
  static int64_t Key(const AttentionShape& s, int64_t head) {
    return (s.heads + head / (s.heads / s.kv_heads)) * s.head_size;
  }
  static double Dot(const double* a, const double* b, int64_t count) {
    double sum = 0;
    for (int64_t i = 0; i < count; ++i) sum += a[i] * b[i];
    return sum;
  }

  static void ForwardRow(const AttentionForward<double>& k, int64_t sample, int64_t head, int64_t i) {
    const AttentionShape& s = k.shape;
    double scale = 1 / std::sqrt(static_cast<double>(s.head_size));
    const double* query = k.qkv + Row(s, sample, i) + head * s.head_size;
    const double* keys = k.qkv + Row(s, sample, 0) + Key(s, head);
    const double* values = keys + s.kv_heads * s.head_size;
    double* scores = k.workspace;
    double largest = -INFINITY;
    for (int64_t j = 0; j <= i; ++j) {
      scores[j] = scale * Dot(query, keys + j * s.qkv_pitch(), s.head_size);
      largest = scores[j] > largest ? scores[j] : largest;
    }
    double sum = 0;
    for (int64_t j = 0; j <= i; ++j) sum += std::exp(scores[j] - largest);
    double log_sum = largest + std::log(sum);
    k.log_sum[(sample * s.heads + head) * s.sequence_length + i] = log_sum;
    double* out = k.out + (sample * s.sequence_length + i) * s.out_pitch() + head * s.head_size;
    for (int64_t d = 0; d < s.head_size; ++d) out[d] = 0;
    for (int64_t j = 0; j <= i; ++j) {
      double weight = std::exp(scores[j] - log_sum);
      for (int64_t d = 0; d < s.head_size; ++d) out[d] += weight * values[j * s.qkv_pitch() + d];
    }
  }

  static void BackwardRow(const AttentionBackward<double>& k, int64_t sample, int64_t head, int64_t i) {
    const AttentionShape& s = k.shape;
    double scale = 1 / std::sqrt(static_cast<double>(s.head_size));
    int64_t query_at = Row(s, sample, i) + head * s.head_size;
    int64_t out_at = (sample * s.sequence_length + i) * s.out_pitch() + head * s.head_size;
    double log_sum = k.log_sum[(sample * s.heads + head) * s.sequence_length + i];
    double delta = Dot(k.out + out_at, k.d_out + out_at, s.head_size);
    for (int64_t j = 0; j <= i; ++j) {
      int64_t key_at = Row(s, sample, j) + Key(s, head);
      int64_t value_at = key_at + s.kv_heads * s.head_size;
      double weight = std::exp(scale * Dot(k.qkv + query_at, k.qkv + key_at, s.head_size) - log_sum);
      double d_score = scale * weight * (Dot(k.d_out + out_at, k.qkv + value_at, s.head_size) - delta);
      for (int64_t d = 0; d < s.head_size; ++d) {
        k.d_qkv[value_at + d] += weight * k.d_out[out_at + d];
        k.d_qkv[query_at + d] += d_score * k.qkv[key_at + d];
        k.d_qkv[key_at + d] += d_score * k.qkv[query_at + d];
      }
    }
  }
};

}  // namespace llmctl::engine::kernels
