#include "common/layout/memory.h"

#include <set>

#include <gtest/gtest.h>

#include "common/layout/parameters.h"

namespace llmctl::layout {
namespace {

ModelShape Shape() {
  return {.architecture = "llama", .layers = 3, .hidden = 64, .heads = 4, .kv_heads = 2, .ffn = 176, .vocabulary = 500};
}

TEST(Memory, ParametersAndOptimizerCostWhatThePrecisionSays) {
  int64_t flat = Parameters(Shape()).flat_size;
  MemoryUse fp32 = TrainingMemory(Shape(), {.precision = Precision::kFp32, .samples = 2, .sequence_length = 32});
  MemoryUse bf16 = TrainingMemory(Shape(), {.precision = Precision::kBf16, .samples = 2, .sequence_length = 32});

  EXPECT_EQ(fp32.parameters, WholePages(4 * flat));
  EXPECT_EQ(bf16.parameters, WholePages(4 * flat) + WholePages(2 * flat));
  for (const MemoryUse& use : {fp32, bf16}) {
    EXPECT_EQ(use.gradients, WholePages(4 * flat));
    EXPECT_EQ(use.optimizer, 2 * WholePages(4 * flat));
  }
  EXPECT_LT(bf16.activations, fp32.activations);
}

TEST(Memory, InferenceKeepsOneLayerAndNoGradients) {
  MemoryOptions options = {.precision = Precision::kBf16, .samples = 1, .sequence_length = 64, .training = false};
  ModelShape shallow = Shape(), deep = Shape();
  deep.layers = 9;

  EXPECT_EQ(TrainingMemory(deep, options).activations, TrainingMemory(shallow, options).activations);
  EXPECT_EQ(TrainingMemory(deep, options).gradients, 0);
  EXPECT_EQ(TrainingMemory(deep, options).optimizer, 0);
}

TEST(Memory, ActivationsGrowWithTheMicroBatch) {
  MemoryOptions one = {.precision = Precision::kBf16, .samples = 1, .sequence_length = 64};
  MemoryOptions two = one;
  two.samples = 2;

  EXPECT_GT(TrainingMemory(Shape(), two).activations, TrainingMemory(Shape(), one).activations);
  EXPECT_EQ(TrainingMemory(Shape(), two).parameters, TrainingMemory(Shape(), one).parameters);
}

TEST(Memory, BufferNamesAreUnique) {
  std::set<std::string> names;
  std::vector<Buffer> buffers = ModelBuffers(Shape(), {.precision = Precision::kBf16, .sequence_length = 16});

  for (const Buffer& buffer : buffers) EXPECT_TRUE(names.insert(buffer.name).second) << buffer.name;
}

}  // namespace
}  // namespace llmctl::layout
