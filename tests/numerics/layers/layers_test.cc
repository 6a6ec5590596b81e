// Each layer's output, input gradient and weight gradient against torch's autograd, in fp64.
#include <array>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "common/layout/memory.h"
#include "worker/engine/layers/attention.h"
#include "worker/engine/layers/embedding.h"
#include "worker/engine/layers/linear.h"
#include "worker/engine/layers/rms_norm.h"
#include "worker/engine/layers/swiglu.h"

namespace llmctl::engine {
namespace {

constexpr double kTolerance = 1e-10;

const kernels::KernelTable<double>& Table() { return kernels::Kernels<double>(kernels::Isa::kBest); }

torch::Tensor Random(at::IntArrayRef sizes) { return torch::randn(sizes, torch::kDouble); }
torch::Tensor Leaf(const torch::Tensor& t) { return t.clone().set_requires_grad(true); }
double* Data(const torch::Tensor& t) { return t.data_ptr<double>(); }

void ExpectEqual(const torch::Tensor& found, const torch::Tensor& expected, const char* what) {
  double scale = expected.abs().max().item<double>();
  EXPECT_LE((found - expected).abs().max().item<double>(), kTolerance * scale) << what;
}

class RecordingSink : public GradSink {
 public:
  void GradientReady(const Parameter& parameter) override { names.push_back(parameter.name); }
  std::vector<std::string> names;
};

class Layers : public testing::Test {
 protected:
  void SetUp() override { torch::manual_seed(1); }
};

TEST_F(Layers, LinearAgreesWithAutogradAndAddsToOrSetsItsGradient) {
  const int64_t rows = 7, in = 5, out = 9;
  torch::Tensor x = Random({rows, in}), weight = Random({out, in}), d_y = Random({rows, out});
  torch::Tensor x_leaf = Leaf(x), weight_leaf = Leaf(weight);
  torch::Tensor expected = torch::matmul(x_leaf, weight_leaf.t());
  expected.backward(d_y);
  torch::Tensor before = Random({out, in});
  torch::Tensor y = torch::zeros_like(d_y), d_x = torch::zeros_like(x), gradient = before.clone();
  Parameter first = {.name = "q"}, second = {.name = "k"};
  RecordingSink sink;
  c10::InferenceMode inference;
  Linear<double> linear(Table(), {out, in, Data(weight), Data(gradient), nullptr, {&first, &second}},
                        {Data(x), Data(y), Data(d_x), Data(d_y)});
  linear.Bind(rows);

  linear.Forward();
  linear.BackwardInput();
  linear.BackwardWeight(Accumulation::kAdd, &sink);

  ExpectEqual(y, expected.detach(), "y");
  ExpectEqual(d_x, x_leaf.grad(), "d_x");
  ExpectEqual(gradient - before, weight_leaf.grad(), "gradient");
  linear.BackwardWeight(Accumulation::kSet, nullptr);
  ExpectEqual(gradient, weight_leaf.grad(), "gradient that was set");
  EXPECT_EQ(sink.names, (std::vector<std::string>{"q", "k"}));
}

TEST_F(Layers, LinearCanBeBoundToFewerRows) {
  torch::Tensor x = Random({6, 4}), weight = Random({3, 4}), y = torch::zeros({6, 3}, torch::kDouble);
  c10::InferenceMode inference;
  Linear<double> linear(Table(), {3, 4, Data(weight), nullptr, nullptr, {}}, {Data(x), Data(y), nullptr, nullptr});

  linear.Bind(2);
  linear.Forward();

  ExpectEqual(y.narrow(0, 0, 2), torch::matmul(x.narrow(0, 0, 2), weight.t()), "bound rows");
  EXPECT_EQ(y.narrow(0, 2, 4).abs().max().item<double>(), 0) << "other rows are left alone";
}

TEST_F(Layers, RmsNormAgreesWithAutograd) {
  const int64_t rows = 5, columns = 12;
  const double epsilon = 1e-3;
  torch::Tensor x = Random({rows, columns}), branch = Random({rows, columns}), weight = Random({columns});
  torch::Tensor d_out = Random({rows, columns}), d_after = Random({rows, columns});
  torch::Tensor sum_leaf = Leaf(x + branch), weight_leaf = Leaf(weight);
  torch::Tensor expected = sum_leaf * torch::rsqrt(sum_leaf.square().mean(-1, true) + epsilon) * weight_leaf;
  expected.backward(d_out);
  for (bool add : {false, true}) {
    torch::Tensor sum = torch::zeros_like(x), out = torch::zeros_like(x), scale = torch::zeros({rows}, torch::kDouble);
    torch::Tensor d_stream = d_after.clone(), gradient = torch::zeros_like(weight);
    Parameter parameter = {.name = "norm"};
    RecordingSink sink;
    RmsNorm<double> norm(Table(), {columns, epsilon, Data(weight), Data(gradient), &parameter},
                         {Data(x), Data(branch), Data(sum), Data(scale), Data(out), Data(d_out), Data(d_stream)});
    norm.Bind(rows);

    norm.Forward();
    norm.Backward(add ? Accumulation::kAdd : Accumulation::kSet, &sink);

    ExpectEqual(sum, x + branch, "sum");
    ExpectEqual(out, expected.detach(), "out");
    ExpectEqual(d_stream, add ? sum_leaf.grad() + d_after : sum_leaf.grad(), "gradient of the stream");
    ExpectEqual(gradient, weight_leaf.grad(), "gradient of the weight");
    EXPECT_EQ(sink.names, std::vector<std::string>{"norm"});
  }
}

TEST_F(Layers, SwiGluAgreesWithAutograd) {
  const int64_t rows = 4, columns = 6;
  torch::Tensor gate_up = Random({rows, 2 * columns}), d_out = Random({rows, columns});
  torch::Tensor leaf = Leaf(gate_up);
  torch::Tensor expected = torch::silu(leaf.slice(1, 0, columns)) * leaf.slice(1, columns);
  expected.backward(d_out);
  torch::Tensor out = torch::zeros_like(d_out), d_gate_up = torch::zeros_like(gate_up);
  SwiGlu<double> swiglu(Table(), columns, {Data(gate_up), Data(out), Data(d_gate_up), Data(d_out)});
  swiglu.Bind(rows);

  swiglu.Forward();
  swiglu.BackwardInput();

  ExpectEqual(out, expected.detach(), "out");
  ExpectEqual(d_gate_up, leaf.grad(), "d_gate_up");
}

TEST_F(Layers, EmbeddingAgreesWithAutograd) {
  const std::vector<int32_t> tokens = {2, 0, 2, 4};
  torch::Tensor weight = Random({5, 6}), d_out = Random({4, 6});
  torch::Tensor leaf = Leaf(weight);
  torch::Tensor expected = leaf.index_select(0, torch::tensor({2, 0, 2, 4}));
  expected.backward(d_out);
  torch::Tensor out = torch::zeros_like(d_out), gradient = torch::zeros_like(weight);
  Parameter parameter = {.name = "embedding"};
  Embedding<double> embedding(Table(), {6, Data(weight), Data(gradient), &parameter}, {Data(out), Data(d_out)});
  embedding.Bind(tokens.data(), 4);

  embedding.Forward();
  embedding.BackwardWeight(nullptr);

  ExpectEqual(out, expected.detach(), "out");
  ExpectEqual(gradient, leaf.grad(), "gradient");
}

// Rotation and attention from torch operators; qkv is [samples, length, heads + 2 * kv_heads, size].
torch::Tensor ReferenceAttention(const torch::Tensor& qkv, int64_t heads, int64_t kv_heads, double theta) {
  int64_t length = qkv.size(1), size = qkv.size(3);
  torch::Tensor frequency = torch::pow(theta, -torch::arange(0, size, 2, torch::kDouble) / size);
  torch::Tensor angle = torch::outer(torch::arange(length, torch::kDouble), frequency).repeat({1, 2});
  auto rotate = [&](const torch::Tensor& x) {
    torch::Tensor swapped = torch::cat({-x.slice(-1, size / 2), x.slice(-1, 0, size / 2)}, -1);
    return x * angle.cos() + swapped * angle.sin();
  };
  torch::Tensor by_head = qkv.transpose(1, 2);
  torch::Tensor q = rotate(by_head.slice(1, 0, heads));
  torch::Tensor k = rotate(by_head.slice(1, heads, heads + kv_heads)).repeat_interleave(heads / kv_heads, 1);
  torch::Tensor v = by_head.slice(1, heads + kv_heads).repeat_interleave(heads / kv_heads, 1);
  torch::Tensor scores = torch::matmul(q, k.transpose(2, 3)) / std::sqrt(static_cast<double>(size));
  scores = scores.masked_fill(torch::ones({length, length}, torch::kBool).triu(1), -INFINITY);
  return torch::matmul(scores.softmax(-1), v).transpose(1, 2).reshape({qkv.size(0), length, heads * size});
}

TEST_F(Layers, AttentionAgreesWithAutograd) {
  const int64_t samples = 2, size = 10;
  const double theta = 500;
  for (auto [heads, kv_heads, length] : {std::array<int64_t, 3>{4, 2, 11}, {3, 3, 5}, {4, 1, 1}}) {
    torch::Tensor qkv = Random({samples, length, heads + 2 * kv_heads, size});
    torch::Tensor d_out = Random({samples, length, heads * size});
    torch::Tensor leaf = Leaf(qkv);
    torch::Tensor expected = ReferenceAttention(leaf, heads, kv_heads, theta);
    expected.backward(d_out);
    torch::Tensor rotated = qkv.clone(), out = torch::zeros_like(d_out), d_qkv = torch::zeros_like(qkv);
    torch::Tensor log_sum = torch::zeros({samples, heads, length}, torch::kDouble);
    torch::Tensor workspace = torch::zeros({layout::AttentionWorkspaceElements(length, size)}, torch::kDouble);
    torch::Tensor angles = torch::zeros({2, length, size / 2}, torch::kDouble);
    RopeTable<double> rope = {Data(angles), Data(angles) + length * size / 2};
    rope.Fill(length, size, theta);
    Attention<double> attention(
        Table(), {heads, kv_heads, size}, rope,
        {Data(rotated), Data(log_sum), Data(out), Data(d_qkv), Data(d_out), Data(workspace)});
    attention.Bind(samples, length);

    attention.Forward();
    attention.BackwardInput();

    SCOPED_TRACE(heads);
    ExpectEqual(out, expected.detach(), "out");
    ExpectEqual(d_qkv, leaf.grad(), "d_qkv");
  }
}

TEST_F(Layers, CrossEntropyAgreesWithAutogradAndIgnoresNegativeTargets) {
  const int64_t rows = 6, columns = 11;
  const std::vector<int32_t> targets = {3, -1, 10, 0, -5, 3};
  torch::Tensor logits = Random({rows, columns}) * 5;
  torch::Tensor leaf = Leaf(logits);
  torch::Tensor index = torch::tensor({3, -1, 10, 0, -1, 3}, torch::kLong);
  torch::Tensor loss = torch::nn::functional::cross_entropy(
      leaf, index, torch::nn::functional::CrossEntropyFuncOptions().ignore_index(-1).reduction(torch::kSum));
  (loss * 0.3).backward();
  torch::Tensor in_place = logits.clone();

  kernels::CrossEntropySum sum = Table().cross_entropy({rows, columns, targets.data(), 0.3, Data(in_place)});

  EXPECT_EQ(sum.tokens, 4);
  EXPECT_NEAR(sum.loss, loss.item<double>(), kTolerance * sum.loss);
  ExpectEqual(in_place, leaf.grad(), "gradient");
}

}  // namespace
}  // namespace llmctl::engine
