// What must hold whatever the numbers are: splits, repetition, initialisation, memory.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <sys/resource.h>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/numerics/models/engine_run.h"

namespace llmctl::engine {
namespace {

Case FourSamples() { return {.name = "four", .shape = SmallShape(), .samples = 4, .length = 37}; }

class RecordingSink : public GradSink {
 public:
  void GradientReady(const Parameter& parameter) override { names.push_back(parameter.name); }
  std::vector<std::string> names;
};

class LlamaPrecision : public testing::TestWithParam<Precision> {};

INSTANTIATE_TEST_SUITE_P(All, LlamaPrecision, testing::Values(Precision::kFp64, Precision::kFp32, Precision::kBf16));

TEST_P(LlamaPrecision, MicroBatchesAddUpToTheWholeBatch) {
  Case c = FourSamples();
  Batch batch = MakeBatch(c);
  EngineRun whole(c, {.precision = GetParam()}), parts(c, {.precision = GetParam()});
  for (EngineRun* run : {&whole, &parts}) run->SetWeights(MakeWeights(c));

  LossSum loss = whole.Backward(batch, 0, 4);
  LossSum sum;
  for (auto [begin, count] : {std::pair{0, 1}, {1, 2}, {3, 1}}) {
    LossSum part = parts.Backward(batch, begin, count);
    sum.loss += part.loss;
    sum.tokens += part.tokens;
  }

  EXPECT_EQ(sum.tokens, loss.tokens);
  double tolerance = GetParam() == Precision::kFp64 ? 1e-12 : GetParam() == Precision::kFp32 ? 1e-5 : 2e-2;
  EXPECT_NEAR(sum.loss, loss.loss, tolerance * loss.loss);
  std::vector<double> found = parts.Gradients(), expected = whole.Gradients();
  for (const Parameter& p : whole.model().parameters()) {
    EXPECT_LE(RelativeError(p, found, expected), tolerance) << p.name;
  }
}

TEST_P(LlamaPrecision, SameStepTwiceGivesTheSameBits) {
  Case c = FourSamples();
  Batch batch = MakeBatch(c);
  EngineRun run(c, {.precision = GetParam()});
  run.SetWeights(MakeWeights(c));
  LossSum first_loss = run.Backward(batch, 0, 4);
  std::vector<double> first = run.Gradients();
  run.model().ZeroGradients();

  LossSum second_loss = run.Backward(batch, 0, 4);

  std::vector<double> second = run.Gradients();
  EXPECT_EQ(first_loss.loss, second_loss.loss);
  EXPECT_EQ(std::memcmp(first.data(), second.data(), first.size() * sizeof(double)), 0);
}

TEST_P(LlamaPrecision, ZeroedGradientsReadAsZeroAndAreSetByTheNextPass) {
  for (bool tied : {false, true}) {
    Case c = FourSamples();
    c.shape.tie_embeddings = tied;
    Batch batch = MakeBatch(c);
    EngineRun fresh(c, {.precision = GetParam()}), used(c, {.precision = GetParam()});
    for (EngineRun* run : {&fresh, &used}) run->SetWeights(MakeWeights(c));
    fresh.Backward(batch, 0, 2);
    used.Backward(batch, 2, 2);

    used.model().ZeroGradients();
    used.Backward(batch, 0, 2);

    EXPECT_EQ(used.Gradients(), fresh.Gradients());
    used.model().ZeroGradients();
    EXPECT_EQ(used.Gradients(), std::vector<double>(used.model().flat_size()));
  }
}

TEST_P(LlamaPrecision, ForwardAloneGivesTheLossOfTraining) {
  Case c = FourSamples();
  Batch batch = MakeBatch(c);
  EngineRun training(c, {.precision = GetParam()}), evaluating(c, {.precision = GetParam(), .training = false});
  for (EngineRun* run : {&training, &evaluating}) run->SetWeights(MakeWeights(c));
  MicroBatch micro = {c.samples, c.length, batch.tokens.data(), batch.targets.data()};

  LossSum expected = training.Backward(batch, 0, 4);

  for (EngineRun* run : {&training, &evaluating}) {
    LossSum found = run->model().Forward(micro);
    EXPECT_EQ(found.loss, expected.loss);
    EXPECT_EQ(found.tokens, expected.tokens);
  }
}

TEST_P(LlamaPrecision, TakesExactlyThePlannedMemory) {
  for (bool training : {true, false}) {
    EngineRun run(FourSamples(), {.precision = GetParam(), .training = training});

    EXPECT_EQ(run.arena().used_bytes(), run.arena().capacity_bytes()) << "training=" << training;
  }
}

TEST(Llama, SinkHearsOfEachParameterOnceAndOfTheEmbeddingLast) {
  for (bool tied : {false, true}) {
    Case c = FourSamples();
    c.shape.tie_embeddings = tied;
    Batch batch = MakeBatch(c);
    EngineRun run(c, {.precision = Precision::kFp32});
    run.model().Initialize(1);
    RecordingSink sink;

    run.Backward(batch, 0, 1, &sink);

    EXPECT_EQ(sink.names.back(), "model.embed_tokens.weight");
    std::vector<std::string> expected;
    for (const Parameter& p : run.model().parameters()) expected.push_back(p.name);
    std::sort(expected.begin(), expected.end());
    std::sort(sink.names.begin(), sink.names.end());
    EXPECT_EQ(sink.names, expected);
  }
}

TEST(Llama, InitialWeightDependsOnSeedNameAndIndexOnly) {
  Case two_layers = FourSamples(), three_layers = FourSamples();
  three_layers.shape.layers = 3;
  three_layers.samples = 1;
  EngineRun a(two_layers, {.precision = Precision::kFp32}), b(three_layers, {.precision = Precision::kBf16});
  EngineRun other_seed(two_layers, {.precision = Precision::kFp32});

  a.model().Initialize(7);
  b.model().Initialize(7);
  other_seed.model().Initialize(8);

  const std::string name = "model.layers.1.self_attn.k_proj.weight";
  auto weights = [&](EngineRun& run) {
    for (const Parameter& p : run.model().parameters()) {
      float* begin = run.model().master() + p.offset;
      if (p.name == name) return std::vector<float>(begin, begin + p.count);
    }
    return std::vector<float>();
  };
  std::vector<float> expected = weights(a);
  ASSERT_FALSE(expected.empty());
  EXPECT_EQ(weights(b), expected);
  EXPECT_NE(weights(other_seed), expected);
  KeyedRandom random(7, "init/" + name);
  EXPECT_EQ(expected[5], static_cast<float>(0.02 * random.Normal(5)));
}

TEST(Llama, InitialLossIsThatOfGuessing) {
  Case c = FourSamples();
  Batch batch = MakeBatch(c);
  EngineRun run(c, {.precision = Precision::kBf16});
  run.model().Initialize(1);

  LossSum loss = run.Backward(batch, 0, 4);

  EXPECT_NEAR(loss.loss / static_cast<double>(loss.tokens), std::log(c.shape.vocabulary), 0.1);
}

TEST(Llama, RefusesAnUnknownArchitecture) {
  Arena arena = *Arena::Create(1 << 20);
  layout::ModelShape shape = SmallShape();
  shape.architecture = "gpt9";

  absl::StatusOr<std::unique_ptr<Model>> model = CreateModel(shape, {.sequence_length_max = 8}, arena);

  EXPECT_EQ(model.status().code(), absl::StatusCode::kInvalidArgument);
}

int64_t MinorFaults() {
  rusage usage;
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_minflt;
}

// What an allocating step pays for are fresh pages. oneDNN asks for about a megabyte of scratch in each product, which
// the allocator keeps; a temporary of the size of an activation or a weight would fault in hundreds of pages.
TEST(Llama, StepTouchesNoFreshPages) {
  for (Precision precision : {Precision::kFp32, Precision::kBf16}) {
    Case c{.name = "wide", .shape = SmallShape(), .samples = 4, .length = 128};
    c.shape.hidden = 256;
    c.shape.ffn = 512;
    c.shape.vocabulary = 1024;
    Batch batch = MakeBatch(c);
    EngineRun run(c, {.precision = precision});
    run.model().Initialize(1);
    for (int warmup = 0; warmup < 2; ++warmup) run.Backward(batch, 0, 4);
    int64_t before = MinorFaults();

    run.Backward(batch, 0, 4);

    EXPECT_LT(MinorFaults() - before, 50);
  }
}

}  // namespace
}  // namespace llmctl::engine
