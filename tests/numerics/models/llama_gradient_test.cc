// Loss and every gradient of the whole model against autograd in fp64, for each precision and instruction set.
#include <cstring>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "tests/numerics/models/engine_run.h"
#include "tests/numerics/models/reference_llama.h"

namespace llmctl::engine {
namespace {

// Largest error relative to the largest element of a tensor. bf16 keeps 8 bits: weights and activations are
// rounded at every layer. docs/precision.md has the same table.
struct Tolerance {
  Precision precision;
  kernels::Isa isa;
  double loss;
  double gradient;
};

constexpr Tolerance kTolerances[] = {
    {Precision::kFp64, kernels::Isa::kBest, 1e-12, 1e-10},
    {Precision::kFp32, kernels::Isa::kAvx512, 2e-6, 2e-5},
    {Precision::kFp32, kernels::Isa::kAvx2, 2e-6, 2e-5},
    {Precision::kBf16, kernels::Isa::kAvx512, 5e-3, 6e-2},
    {Precision::kBf16, kernels::Isa::kAvx2, 5e-3, 6e-2},
};

std::vector<Case> Cases() {
  std::vector<Case> cases;
  auto add = [&](const char* name) -> Case& { return cases.emplace_back(Case{.name = name, .shape = SmallShape()}); };
  add("GroupedQueries");
  add("TiedEmbeddings").shape.tie_embeddings = true;
  add("OneKeyPerQuery").shape.kv_heads = 4;
  add("OneKeyForAll").shape.kv_heads = 1;
  Case& long_one = add("LengthOverTwoBlocks");
  long_one.samples = 1;
  long_one.length = 131;
  Case& wide_heads = add("HeadSize128");
  wide_heads.shape.hidden = 256;
  wide_heads.shape.heads = 2;
  Case& odd_heads = add("HeadSize24");
  odd_heads.shape.hidden = 96;
  odd_heads.length = 70;
  Case& token = add("OneToken");
  token.length = 1;
  token.seed = 3;
  return cases;
}

class LlamaGradient : public testing::TestWithParam<std::tuple<Case, Tolerance>> {
 protected:
  void SetUp() override {
    if (!kernels::ResolveIsa(std::get<1>(GetParam()).isa).ok()) GTEST_SKIP() << "this CPU lacks the instructions";
  }
};

TEST_P(LlamaGradient, AgreesWithAutograd) {
  const auto& [c, tolerance] = GetParam();
  Batch batch = MakeBatch(c);
  std::vector<double> weights = MakeWeights(c);
  ReferenceResult reference = RunReferenceLlama(c.shape, weights, {batch.tokens, batch.targets, c.samples},
                                                1.0 / static_cast<double>(batch.valid));
  EngineRun run(c, {.precision = tolerance.precision, .isa = tolerance.isa});
  run.SetWeights(weights);

  LossSum loss = run.Backward(batch, 0, c.samples);

  EXPECT_EQ(loss.tokens, batch.valid);
  EXPECT_NEAR(loss.loss, reference.loss, tolerance.loss * reference.loss);
  std::vector<double> gradients = run.Gradients(), expected(gradients.size());
  for (const Parameter& p : run.model().parameters()) {
    std::memcpy(expected.data() + p.offset, reference.gradients.at(p.name).data_ptr(), p.count * sizeof(double));
    EXPECT_LE(RelativeError(p, gradients, expected), tolerance.gradient) << p.name;
  }
}

std::string TestName(const testing::TestParamInfo<std::tuple<Case, Tolerance>>& info) {
  const auto& [c, tolerance] = info.param;
  const char* precision = tolerance.precision == Precision::kFp64   ? "Fp64"
                          : tolerance.precision == Precision::kFp32 ? "Fp32"
                                                                    : "Bf16";
  return absl::StrCat(c.name, "_", precision, "_", kernels::IsaName(tolerance.isa));
}

INSTANTIATE_TEST_SUITE_P(Shapes, LlamaGradient,
                         testing::Combine(testing::ValuesIn(Cases()), testing::ValuesIn(kTolerances)), TestName);

TEST(LlamaLogits, LastPositionAgreesWithTheReference) {
  Case c{.name = "logits", .shape = SmallShape(), .samples = 1, .length = 20};
  Batch batch = MakeBatch(c);
  std::vector<double> weights = MakeWeights(c);
  ReferenceResult reference = RunReferenceLlama(c.shape, weights, {batch.tokens, batch.targets, 1}, 1);
  at::Tensor expected = reference.logits[0][c.length - 1];
  for (bool training : {true, false}) {
    EngineRun run(c, {.precision = Precision::kFp32, .training = training});
    run.SetWeights(weights);
    std::vector<float> logits(c.shape.vocabulary);

    run.model().LastLogits(batch.tokens.data(), c.length, logits.data());

    double largest = expected.abs().max().item<double>();
    for (int64_t i = 0; i < c.shape.vocabulary; ++i) {
      EXPECT_NEAR(logits[i], expected[i].item<double>(), 1e-5 * largest) << "training=" << training;
    }
  }
}

}  // namespace
}  // namespace llmctl::engine
