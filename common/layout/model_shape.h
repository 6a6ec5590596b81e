// The shape of a decoder-only transformer: sizes only, shared by planner and engine. Torch-free.
#pragma once

#include <cstdint>
#include <string>

namespace llmctl::layout {

struct ModelShape {
  std::string architecture;  // "llama"
  int64_t layers = 0;
  int64_t hidden = 0;
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t ffn = 0;
  int64_t vocabulary = 0;
  double rope_theta = 10000;
  double norm_epsilon = 1e-5;
  bool tie_embeddings = false;
  double init_std = 0.02;

  int64_t head_size() const { return hidden / heads; }
};

}  // namespace llmctl::layout
