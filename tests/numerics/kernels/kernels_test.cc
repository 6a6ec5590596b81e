// The AVX-512 and AVX2 columns of the kernel table against the plain fp64 one, on sizes that are no multiple of
// anything. Inputs are rounded to the operand type first, so only the kernel's own arithmetic is compared.
#include "worker/engine/kernels/table.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "common/base/rng.h"
#include "common/layout/memory.h"

namespace llmctl::engine::kernels {
namespace {

template <typename A>
struct Numbers {
  static A From(double x) { return static_cast<A>(x); }
  static double To(A x) { return x; }
  // Relative to the largest element.
  static constexpr double kTolerance = 3e-6;
};
template <>
struct Numbers<Bf16> {
  // To nearest, ties to even.
  static Bf16 From(double x) {
    uint32_t bits = std::bit_cast<uint32_t>(static_cast<float>(x));
    return {static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
  }
  static double To(Bf16 x) { return std::bit_cast<float>(static_cast<uint32_t>(x.bits) << 16); }
  static constexpr double kTolerance = 1.2e-2;
};

template <typename T>
std::vector<T> Convert(const std::vector<double>& values) {
  std::vector<T> out;
  for (double v : values) out.push_back(Numbers<T>::From(v));
  return out;
}
template <typename T>
std::vector<double> Widen(const std::vector<T>& values) {
  std::vector<double> out;
  for (T v : values) out.push_back(Numbers<T>::To(v));
  return out;
}

void ExpectNear(const std::vector<double>& found, const std::vector<double>& expected, double tolerance,
                const char* what) {
  ASSERT_EQ(found.size(), expected.size());
  double largest = 0, difference = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    largest = std::max(largest, std::abs(expected[i]));
    double d = std::abs(found[i] - expected[i]);
    difference = std::isnan(d) ? INFINITY : std::max(difference, d);
  }
  EXPECT_LE(difference, tolerance * largest) << what;
}

// Columns to test: operand type and instruction set.
template <typename Operand, Isa kIsa>
struct Column {
  using A = Operand;
  static constexpr Isa kUsed = kIsa;
};

template <typename C>
class KernelColumn : public testing::Test {
 protected:
  using A = typename C::A;

  void SetUp() override {
    if (!ResolveIsa(C::kUsed).ok()) GTEST_SKIP() << "this CPU lacks the instructions";
  }

  // As an operand or a residual would hold them, in fp64.
  std::vector<double> Operands(int64_t count) { return Widen(Convert<A>(Normals(count))); }
  std::vector<double> Residuals(int64_t count) { return Widen(Convert<float>(Normals(count))); }

  const KernelTable<A>& table() const { return Kernels<A>(C::kUsed); }
  const KernelTable<double>& plain() const { return Kernels<double>(Isa::kBest); }

  static constexpr double kTolerance = Numbers<A>::kTolerance;
  static constexpr double kResidualTolerance = 3e-6;

 private:
  std::vector<double> Normals(int64_t count) {
    KeyedRandom random(1, "kernels_test");
    std::vector<double> out(count);
    for (double& x : out) x = random.Normal(next_++);
    return out;
  }

  uint64_t next_ = 0;
};

using Columns = testing::Types<Column<float, Isa::kAvx512>, Column<float, Isa::kAvx2>, Column<Bf16, Isa::kAvx512>,
                               Column<Bf16, Isa::kAvx2>>;
TYPED_TEST_SUITE(KernelColumn, Columns);

TYPED_TEST(KernelColumn, NormForwardAgreesWithThePlainOne) {
  using A = typename TypeParam::A;
  const int64_t rows = 3, columns = 37;
  std::vector<double> x = this->Residuals(rows * columns), weight = this->Residuals(columns);
  std::vector<double> branch = this->Operands(rows * columns);
  std::vector<double> sum(x.size()), out(x.size()), scale(rows);
  std::vector<float> x32 = Convert<float>(x), weight32 = Convert<float>(weight), sum32(x.size()), scale32(rows);
  std::vector<A> branch_a = Convert<A>(branch), out_a(x.size());

  this->plain().norm_forward({rows, columns, 1e-5, x.data(), branch.data(), weight.data(), sum.data(), out.data(),
                              scale.data()});
  this->table().norm_forward({rows, columns, 1e-5, x32.data(), branch_a.data(), weight32.data(), sum32.data(),
                              out_a.data(), scale32.data()});

  ExpectNear(Widen(sum32), sum, this->kResidualTolerance, "sum");
  ExpectNear(Widen(scale32), scale, this->kResidualTolerance, "scale");
  ExpectNear(Widen(out_a), out, this->kTolerance, "out");
}

TYPED_TEST(KernelColumn, NormBackwardAgreesWithThePlainOne) {
  using A = typename TypeParam::A;
  const int64_t rows = 3, columns = 37;
  for (bool add : {false, true}) {
    std::vector<double> d_out = this->Operands(rows * columns), sum = this->Residuals(rows * columns);
    std::vector<double> scale = this->Residuals(rows), weight = this->Residuals(columns);
    std::vector<double> d_sum = this->Residuals(rows * columns), d_weight = this->Residuals(columns);
    std::vector<float> sum32 = Convert<float>(sum), scale32 = Convert<float>(scale), weight32 = Convert<float>(weight);
    std::vector<float> d_sum32 = Convert<float>(d_sum), d_weight32 = Convert<float>(d_weight);
    std::vector<A> d_out_a = Convert<A>(d_out), operand(d_sum.size());

    this->plain().norm_backward({rows, columns, d_out.data(), sum.data(), scale.data(), weight.data(), add,
                                 d_sum.data(), nullptr, d_weight.data()});
    this->table().norm_backward({rows, columns, d_out_a.data(), sum32.data(), scale32.data(), weight32.data(), add,
                                 d_sum32.data(), operand.data(), d_weight32.data()});

    ExpectNear(Widen(d_sum32), d_sum, this->kResidualTolerance, "d_sum");
    ExpectNear(Widen(operand), d_sum, this->kTolerance, "d_sum as an operand");
    ExpectNear(Widen(d_weight32), d_weight, this->kResidualTolerance, "d_weight");
  }
}

TYPED_TEST(KernelColumn, RopeAgreesWithThePlainOneAndItsInverseUndoesIt) {
  using A = typename TypeParam::A;
  const int64_t rows = 6, length = 3, heads = 2, size = 22, pitch = heads * size + 5;
  std::vector<double> x = this->Operands(rows * pitch), cosine, sine;
  for (int64_t i = 0; i < length * size / 2; ++i) {
    cosine.push_back(static_cast<float>(std::cos(0.3 * static_cast<double>(i))));
    sine.push_back(static_cast<float>(std::sin(0.3 * static_cast<double>(i))));
  }
  std::vector<double> original = x;
  std::vector<float> cosine32 = Convert<float>(cosine), sine32 = Convert<float>(sine);
  std::vector<A> x_a = Convert<A>(x);
  Rope<A> rope = {rows, length, heads, size, pitch, cosine32.data(), sine32.data(), false, x_a.data()};

  this->plain().rope({rows, length, heads, size, pitch, cosine.data(), sine.data(), false, x.data()});
  this->table().rope(rope);
  ExpectNear(Widen(x_a), x, this->kTolerance, "rotated");

  rope.inverse = true;
  this->table().rope(rope);
  ExpectNear(Widen(x_a), original, 2 * this->kTolerance, "rotated back");
}

TYPED_TEST(KernelColumn, SwiGluAgreesWithThePlainOne) {
  using A = typename TypeParam::A;
  const int64_t rows = 3, columns = 29;
  std::vector<double> gate_up = this->Operands(rows * 2 * columns), d_out = this->Operands(rows * columns);
  gate_up[0] = 90;   // saturated
  gate_up[1] = -90;
  gate_up = Widen(Convert<A>(gate_up));
  std::vector<double> out(d_out.size()), d_gate_up(gate_up.size());
  std::vector<A> gate_up_a = Convert<A>(gate_up), d_out_a = Convert<A>(d_out), out_a(out.size());
  std::vector<A> d_gate_up_a(gate_up.size());

  this->plain().swiglu_forward({rows, columns, gate_up.data(), out.data()});
  this->table().swiglu_forward({rows, columns, gate_up_a.data(), out_a.data()});
  this->plain().swiglu_backward({rows, columns, gate_up.data(), d_out.data(), d_gate_up.data()});
  this->table().swiglu_backward({rows, columns, gate_up_a.data(), d_out_a.data(), d_gate_up_a.data()});

  ExpectNear(Widen(out_a), out, this->kTolerance, "out");
  ExpectNear(Widen(d_gate_up_a), d_gate_up, this->kTolerance, "d_gate_up");
}

TYPED_TEST(KernelColumn, AttentionAgreesWithThePlainOne) {
  using A = typename TypeParam::A;
  for (AttentionShape shape : {AttentionShape{2, 1, 2, 1, 16}, AttentionShape{1, 63, 2, 2, 18},
                               AttentionShape{2, 64, 4, 2, 64}, AttentionShape{1, 149, 6, 2, 80},
                               AttentionShape{1, 200, 2, 1, 128}}) {
    int64_t rows = shape.samples * shape.sequence_length;
    std::vector<double> qkv = this->Operands(rows * shape.qkv_pitch());
    std::vector<double> d_out = this->Operands(rows * shape.out_pitch());
    std::vector<double> out(d_out.size()), log_sum(rows * shape.heads), d_qkv(qkv.size());
    int64_t elements = layout::AttentionWorkspaceElements(shape.sequence_length, shape.head_size);
    std::vector<double> workspace(elements);
    std::vector<float> workspace32(elements, std::numeric_limits<float>::quiet_NaN()), log_sum32(log_sum.size());
    std::vector<A> qkv_a = Convert<A>(qkv), d_out_a = Convert<A>(d_out), out_a(out.size()), d_qkv_a(qkv.size());

    this->plain().attention_forward({shape, qkv.data(), out.data(), log_sum.data(), workspace.data()});
    this->table().attention_forward({shape, qkv_a.data(), out_a.data(), log_sum32.data(), workspace32.data()});
    this->plain().attention_backward(
        {shape, qkv.data(), out.data(), d_out.data(), log_sum.data(), d_qkv.data(), workspace.data()});
    this->table().attention_backward({shape, qkv_a.data(), out_a.data(), d_out_a.data(), log_sum32.data(),
                                      d_qkv_a.data(), workspace32.data()});

    SCOPED_TRACE(shape.sequence_length);
    ExpectNear(Widen(out_a), out, this->kTolerance, "out");
    ExpectNear(Widen(log_sum32), log_sum, this->kResidualTolerance, "log_sum");
    ExpectNear(Widen(d_qkv_a), d_qkv, this->kTolerance, "d_qkv");
  }
}

TYPED_TEST(KernelColumn, AttentionDoesNotSeeLaterTokens) {
  using A = typename TypeParam::A;
  const AttentionShape shape = {1, 90, 1, 1, 32};
  const int64_t changed_row = 70;
  std::vector<A> qkv = Convert<A>(this->Operands(90 * shape.qkv_pitch())), before(90 * 32), after(90 * 32);
  std::vector<float> log_sum(90), workspace(layout::AttentionWorkspaceElements(90, 32));

  this->table().attention_forward({shape, qkv.data(), before.data(), log_sum.data(), workspace.data()});
  for (int64_t i = changed_row * shape.qkv_pitch(); i < 90 * shape.qkv_pitch(); ++i) qkv[i] = Numbers<A>::From(1e4);
  this->table().attention_forward({shape, qkv.data(), after.data(), log_sum.data(), workspace.data()});

  std::vector<double> first = Widen(before), second = Widen(after);
  EXPECT_TRUE(std::equal(first.begin(), first.begin() + changed_row * 32, second.begin()));
  EXPECT_NE(first, second);
}

TYPED_TEST(KernelColumn, CrossEntropyAgreesWithThePlainOne) {
  using A = typename TypeParam::A;
  const int64_t rows = 4, columns = 261;
  const std::vector<int32_t> targets = {260, -1, 0, 7};
  for (double gradient_scale : {0.25, 0.0}) {
    std::vector<double> logits = this->Operands(rows * columns);
    for (double& x : logits) x -= 20;  // all negative: padding lanes must not count as the largest
    logits = Widen(Convert<A>(logits));
    std::vector<A> logits_a = Convert<A>(logits);

    CrossEntropySum expected =
        this->plain().cross_entropy({rows, columns, targets.data(), gradient_scale, logits.data()});
    CrossEntropySum found =
        this->table().cross_entropy({rows, columns, targets.data(), gradient_scale, logits_a.data()});

    EXPECT_EQ(found.tokens, 3);
    EXPECT_EQ(expected.tokens, 3);
    EXPECT_NEAR(found.loss, expected.loss, 1e-6 * expected.loss);
    ExpectNear(Widen(logits_a), logits, this->kTolerance, "gradient");
  }
}

TYPED_TEST(KernelColumn, EmbeddingReadsAndAddsRows) {
  const int64_t rows = 5, columns = 19, vocabulary = 4;
  const std::vector<int32_t> tokens = {3, 0, 3, 3, 1};
  std::vector<double> values = this->Residuals(vocabulary * columns), d_out = this->Residuals(rows * columns);
  std::vector<double> out(d_out.size()), d_values = this->Residuals(values.size());
  std::vector<float> values32 = Convert<float>(values), d_out32 = Convert<float>(d_out), out32(out.size());
  std::vector<float> d_values32 = Convert<float>(d_values);

  this->plain().embedding_forward({rows, columns, tokens.data(), values.data(), out.data()});
  this->table().embedding_forward({rows, columns, tokens.data(), values32.data(), out32.data()});
  this->plain().embedding_backward({rows, columns, tokens.data(), d_out.data(), d_values.data()});
  this->table().embedding_backward({rows, columns, tokens.data(), d_out32.data(), d_values32.data()});

  EXPECT_EQ(Widen(out32), out);
  ExpectNear(Widen(d_values32), d_values, this->kResidualTolerance, "d_table");
}

TYPED_TEST(KernelColumn, CastRoundsToNearestAndAccumulateAdds) {
  using A = typename TypeParam::A;
  const int64_t count = 45;
  std::vector<float> x = Convert<float>(this->Residuals(count)), sum = Convert<float>(this->Residuals(count));
  std::vector<float> before = sum, wide(count);
  std::vector<A> cast(count);

  this->table().cast(x.data(), count, cast.data());
  this->table().widen(cast.data(), count, wide.data());
  this->table().accumulate(cast.data(), count, sum.data());

  for (int64_t i = 0; i < count; ++i) {
    float expected = static_cast<float>(Numbers<A>::To(Numbers<A>::From(x[i])));
    EXPECT_EQ(wide[i], expected);
    EXPECT_EQ(sum[i], before[i] + expected);
  }
}

TYPED_TEST(KernelColumn, AdamWAgreesWithThePlainOneAndWritesTheRoundedWeights) {
  const int64_t count = 101;
  std::vector<double> gradient = this->Residuals(count), master = this->Residuals(count);
  std::vector<double> first(count), second(count);
  std::vector<float> gradient32 = Convert<float>(gradient), master32 = Convert<float>(master);
  std::vector<float> first32(count), second32(count);
  std::vector<Bf16> weights(count);

  for (int64_t step = 1; step <= 3; ++step) {
    AdamWStep<double> plain = {count, 1e-2, 0.9, 0.95, 1e-8, 0.1, step, 0.5, gradient.data(), master.data(),
                               first.data(), second.data(), nullptr};
    AdamWStep<float> fast = {count, 1e-2, 0.9, 0.95, 1e-8, 0.1, step, 0.5, gradient32.data(), master32.data(),
                             first32.data(), second32.data(), weights.data()};
    this->plain().optimizer.adamw(plain);
    this->table().optimizer.adamw(fast);
  }

  ExpectNear(Widen(master32), master, this->kResidualTolerance, "master");
  ExpectNear(Widen(second32), second, this->kResidualTolerance, "second moment");
  EXPECT_EQ(Widen(weights), Widen(Convert<Bf16>(Widen(master32))));
}

TYPED_TEST(KernelColumn, SumOfSquaresKeepsItsBitsOverLongRanges) {
  const int64_t count = 100003;
  std::vector<double> x = this->Residuals(count);
  std::vector<float> x32 = Convert<float>(x);

  double expected = this->plain().optimizer.sum_of_squares(x.data(), count);
  double found = this->table().optimizer.sum_of_squares(x32.data(), count);

  EXPECT_NEAR(found, expected, 1e-6 * expected);
}

TEST(Isa, NamesAreReadAndOthersRefused) {
  EXPECT_EQ(ParseIsa("sse9").status().code(), absl::StatusCode::kInvalidArgument);
  absl::StatusOr<Isa> best = ParseIsa("");
  ASSERT_TRUE(best.ok());
  EXPECT_NE(*best, Isa::kBest);
  EXPECT_EQ(*ParseIsa("avx2"), Isa::kAvx2);
}

}  // namespace
}  // namespace llmctl::engine::kernels
