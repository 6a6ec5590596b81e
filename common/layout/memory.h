// Memory of a training process: every buffer a model needs, by name and size.
//
// The engine allocates exactly the buffers listed here and asks for them by name, so what the planner promises
// and what a trainer maps cannot differ. Sizes follow from the shape, the precision and the largest
// micro-batch alone.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/layout/model_shape.h"

namespace llmctl::layout {

enum class Precision { kFp32, kBf16, kFp64 };  // kFp64: tests only

// Bytes of an operand of the layers (activations, weights as GEMMs see them) and of the residual stream,
// master weights and gradients.
int64_t OperandBytes(Precision precision);
int64_t ResidualBytes(Precision precision);

struct MemoryOptions {
  Precision precision = Precision::kBf16;
  int64_t samples = 1;          // of the largest micro-batch
  int64_t sequence_length = 0;  // longest
  bool training = true;         // false: no gradients, one layer's activations
};

enum class BufferUse { kParameters, kGradients, kOptimizer, kActivations, kWorkspace };

struct Buffer {
  std::string name;  // unique
  BufferUse use;
  int64_t bytes;
};

// Every buffer starts on a page and takes whole pages: sums do not depend on the order of allocation.
inline constexpr int64_t kPageBytes = 4096;
constexpr int64_t WholePages(int64_t bytes) { return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes; }

// `shape` must be valid.
std::vector<Buffer> ModelBuffers(const ModelShape& shape, const MemoryOptions& options);
// AdamW's moments.
std::vector<Buffer> OptimizerBuffers(const ModelShape& shape, const MemoryOptions& options);

// Elements (of the residual's type) of the scratch memory of the attention kernels, for one sequence of one head.
int64_t AttentionWorkspaceElements(int64_t sequence_length, int64_t head_size);

// Bytes in whole pages.
struct MemoryUse {
  int64_t parameters = 0;
  int64_t gradients = 0;
  int64_t optimizer = 0;
  int64_t activations = 0;
  int64_t workspace = 0;

  int64_t total() const { return parameters + gradients + optimizer + activations + workspace; }
};

MemoryUse Sum(const std::vector<Buffer>& buffers);
// Model and, when training, optimizer.
MemoryUse TrainingMemory(const ModelShape& shape, const MemoryOptions& options);

}  // namespace llmctl::layout
