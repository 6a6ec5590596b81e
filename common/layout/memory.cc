#include "common/layout/memory.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

#include "common/layout/parameters.h"

namespace llmctl::layout {
namespace {

// Collects buffers; sizes are given in elements.
class BufferList {
 public:
  BufferList(int64_t operand_bytes, int64_t residual_bytes)
      : operand_bytes_(operand_bytes), residual_bytes_(residual_bytes) {}

  void Operand(std::string name, BufferUse use, int64_t elements) {
    buffers_.push_back({std::move(name), use, elements * operand_bytes_});
  }
  void Residual(std::string name, BufferUse use, int64_t elements) {
    buffers_.push_back({std::move(name), use, elements * residual_bytes_});
  }
  std::vector<Buffer> Finish() { return std::move(buffers_); }

 private:
  int64_t operand_bytes_;
  int64_t residual_bytes_;
  std::vector<Buffer> buffers_;
};

// What a layer's forward pass leaves for its backward pass. Without training all layers share one set.
void AddStash(const ModelShape& s, int64_t tokens, int64_t layer, BufferList& list) {
  std::string prefix = absl::StrCat("layer.", layer, ".");
  int64_t qkv = (s.heads + 2 * s.kv_heads) * s.head_size();
  auto operand = [&](const char* name, int64_t elements) {
    list.Operand(prefix + name, BufferUse::kActivations, elements);
  };
  auto residual = [&](const char* name, int64_t elements) {
    list.Residual(prefix + name, BufferUse::kActivations, elements);
  };
  residual("attention_stream", tokens * s.hidden);
  residual("attention_norm.scale", tokens);
  operand("attention_input", tokens * s.hidden);
  operand("qkv", tokens * qkv);
  residual("attention.log_sum", tokens * s.heads);
  operand("attention_output", tokens * s.heads * s.head_size());
  residual("ffn_stream", tokens * s.hidden);
  residual("ffn_norm.scale", tokens);
  operand("ffn_input", tokens * s.hidden);
  operand("gate_up", tokens * 2 * s.ffn);
  operand("ffn_hidden", tokens * s.ffn);
}

// Gradients of activations: one set for all layers.
void AddBackwardWorkspace(const ModelShape& s, const MemoryOptions& options, int64_t tokens, BufferList& list) {
  int64_t qkv = (s.heads + 2 * s.kv_heads) * s.head_size();
  list.Residual("gradient.stream", BufferUse::kWorkspace, tokens * s.hidden);
  list.Operand("gradient.hidden", BufferUse::kWorkspace, tokens * s.hidden);
  list.Operand("gradient.qkv", BufferUse::kWorkspace, tokens * qkv);
  list.Operand("gradient.gate_up", BufferUse::kWorkspace, tokens * 2 * s.ffn);
  list.Operand("gradient.ffn_hidden", BufferUse::kWorkspace, tokens * s.ffn);
  if (options.precision != Precision::kBf16) return;
  list.Operand("gradient.stream_operand", BufferUse::kWorkspace, tokens * s.hidden);
  list.Operand("gradient.weight", BufferUse::kWorkspace,
               std::max({s.vocabulary * s.hidden, 2 * s.ffn * s.hidden, qkv * s.hidden}));
}

}  // namespace

int64_t OperandBytes(Precision precision) {
  switch (precision) {
    case Precision::kFp32: return 4;
    case Precision::kBf16: return 2;
    case Precision::kFp64: return 8;
  }
  return 0;
}

int64_t ResidualBytes(Precision precision) { return precision == Precision::kFp64 ? 8 : 4; }

int64_t AttentionWorkspaceElements(int64_t sequence_length, int64_t head_size) {
  constexpr int64_t kBlock = 64;
  int64_t padded = (sequence_length + 15) / 16 * 16;
  return 7 * padded * head_size + 5 * kBlock * padded + 2 * padded + 3 * kBlock * head_size;
}

std::vector<Buffer> ModelBuffers(const ModelShape& s, const MemoryOptions& options) {
  BufferList list(OperandBytes(options.precision), ResidualBytes(options.precision));
  int64_t flat = Parameters(s).flat_size;
  int64_t tokens = options.samples * options.sequence_length;

  list.Residual("master", BufferUse::kParameters, flat);
  if (options.precision == Precision::kBf16) list.Operand("weights", BufferUse::kParameters, flat);
  if (options.training) list.Residual("gradients", BufferUse::kGradients, flat);

  for (int64_t layer = 0; layer < (options.training ? s.layers : 1); ++layer) AddStash(s, tokens, layer, list);
  list.Residual("final_stream", BufferUse::kActivations, tokens * s.hidden);
  list.Residual("final_norm.scale", BufferUse::kActivations, tokens);
  list.Operand("head_input", BufferUse::kActivations, tokens * s.hidden);
  list.Operand("logits", BufferUse::kActivations, tokens * s.vocabulary);

  list.Operand("branch", BufferUse::kWorkspace, tokens * s.hidden);
  list.Residual("attention", BufferUse::kWorkspace,
                AttentionWorkspaceElements(options.sequence_length, s.head_size()));
  list.Residual("rope", BufferUse::kWorkspace, options.sequence_length * s.head_size());
  if (options.training) AddBackwardWorkspace(s, options, tokens, list);
  return list.Finish();
}

std::vector<Buffer> OptimizerBuffers(const ModelShape& shape, const MemoryOptions& options) {
  int64_t bytes = Parameters(shape).flat_size * ResidualBytes(options.precision);
  return {{"optimizer.first_moment", BufferUse::kOptimizer, bytes},
          {"optimizer.second_moment", BufferUse::kOptimizer, bytes}};
}

MemoryUse Sum(const std::vector<Buffer>& buffers) {
  MemoryUse use;
  for (const Buffer& buffer : buffers) {
    int64_t bytes = WholePages(buffer.bytes);
    switch (buffer.use) {
      case BufferUse::kParameters: use.parameters += bytes; break;
      case BufferUse::kGradients: use.gradients += bytes; break;
      case BufferUse::kOptimizer: use.optimizer += bytes; break;
      case BufferUse::kActivations: use.activations += bytes; break;
      case BufferUse::kWorkspace: use.workspace += bytes; break;
    }
  }
  return use;
}

MemoryUse TrainingMemory(const ModelShape& shape, const MemoryOptions& options) {
  MemoryUse use = Sum(ModelBuffers(shape, options));
  if (options.training) use.optimizer = Sum(OptimizerBuffers(shape, options)).optimizer;
  return use;
}

}  // namespace llmctl::layout
