// llm-bench-train: how fast one training step is, without data, coordinator or disk.
//
// Prints one JSON object. Tokens per CPU second is the figure to compare: on a busy machine the wall clock
// measures the neighbours.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <string>
#include <vector>

#include <ATen/Parallel.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "common/base/rng.h"
#include "worker/engine/kernels/table.h"
#include "worker/engine/models/model.h"

namespace llmctl {
namespace {

using engine::Precision;
using engine::kernels::Isa;

struct Flags {
  std::string model = "tiny";
  std::string dtype = "bf16";
  std::string isa = "best";
  int steps = 20;
  int warmup_steps = 3;
  int micro_batches = 1;
  int threads = 1;
};

struct Workload {
  layout::ModelShape shape;
  int64_t samples;
  int64_t length;
};

// Llama shapes of the peer measurements, so that figures can be set side by side.
Workload MakeWorkload(const std::string& model) {
  Workload w;
  w.shape.architecture = "llama";
  if (model == "small") {
    w.shape = {"llama", 12, 768, 12, 12, 2048, 32000};
    w.samples = 2;
    w.length = 512;
  } else {
    w.shape = {"llama", 4, 256, 4, 4, 704, 8192};
    w.samples = 8;
    w.length = 256;
  }
  return w;
}

double Seconds(clockid_t clock) {
  timespec t;
  clock_gettime(clock, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

// Everything a step touches.
struct Trainer {
  std::unique_ptr<engine::Model> model;
  const engine::kernels::OptimizerKernels<float>* optimizer;
  float* first_moment;
  float* second_moment;
  int64_t updates = 0;

  double Step(const engine::MicroBatch& batch, int micro_batches) {
    double tokens = static_cast<double>(batch.samples * batch.sequence_length * micro_batches);
    double loss = 0;
    model->ZeroGradients();
    for (int i = 0; i < micro_batches; ++i) loss += model->ForwardBackward(batch, 1 / tokens, nullptr).loss;
    double norm = std::sqrt(optimizer->sum_of_squares(model->gradients(), model->flat_size()));
    ++updates;
    for (const engine::Parameter& p : model->parameters()) {
      engine::kernels::AdamWStep<float> step = {.count = p.count, .learning_rate = 1e-3, .beta1 = 0.9, .beta2 = 0.95,
                                                .epsilon = 1e-8, .weight_decay = p.decay ? 0.1 : 0, .step = updates,
                                                .gradient_scale = norm > 1 ? 1 / norm : 1};
      step.gradient = model->gradients() + p.offset;
      step.master = model->master() + p.offset;
      step.first_moment = first_moment + p.offset;
      step.second_moment = second_moment + p.offset;
      step.weights = model->weights() == nullptr ? nullptr : model->weights() + p.offset;
      optimizer->adamw(step);
    }
    return loss / tokens;
  }
};

absl::StatusOr<nlohmann::json> Measure(const Flags& flags) {
  Workload w = MakeWorkload(flags.model);
  auto isa = engine::kernels::ParseIsa(flags.isa);
  if (!isa.ok()) return isa.status();
  engine::ModelOptions options = {.precision = flags.dtype == "bf16" ? Precision::kBf16 : Precision::kFp32,
                                  .samples_max = w.samples, .sequence_length_max = w.length, .isa = *isa};
  int64_t flat_bytes = layout::Parameters(w.shape).flat_size * static_cast<int64_t>(sizeof(float));
  absl::StatusOr<engine::Arena> arena =
      engine::Arena::Create(engine::ModelArenaBytes(w.shape, options) + 2 * layout::WholePages(flat_bytes));
  if (!arena.ok()) return arena.status();
  auto model = engine::CreateModel(w.shape, options, *arena);
  if (!model.ok()) return model.status();
  Trainer trainer = {*std::move(model), &engine::kernels::Kernels<float>(*isa).optimizer,
                     arena->Allocate<float>(flat_bytes / 4, "moments"),
                     arena->Allocate<float>(flat_bytes / 4, "moments")};
  double begin = Seconds(CLOCK_PROCESS_CPUTIME_ID);
  trainer.model->Initialize(1);
  double initialize_seconds = Seconds(CLOCK_PROCESS_CPUTIME_ID) - begin;

  std::vector<int32_t> tokens(w.samples * w.length + 1);
  SeededRng rng(1);
  for (int32_t& token : tokens) token = static_cast<int32_t>(rng.Below(w.shape.vocabulary));
  engine::MicroBatch batch = {w.samples, w.length, tokens.data(), tokens.data() + 1};
  double first_loss = 0, loss = 0, cpu = 0, best = 1e30, wall = 0;
  for (int step = 0; step < flags.warmup_steps + flags.steps; ++step) {
    double cpu_begin = Seconds(CLOCK_PROCESS_CPUTIME_ID), wall_begin = Seconds(CLOCK_MONOTONIC);
    loss = trainer.Step(batch, flags.micro_batches);
    if (step == 0) first_loss = loss;
    if (step < flags.warmup_steps) continue;
    double cpu_step = Seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu_begin;
    cpu += cpu_step;
    best = std::min(best, cpu_step);
    wall += Seconds(CLOCK_MONOTONIC) - wall_begin;
  }
  double step_tokens = static_cast<double>(w.samples * w.length * flags.micro_batches);
  return nlohmann::json{{"model", flags.model},
                        {"dtype", flags.dtype},
                        {"isa", engine::kernels::IsaName(*isa)},
                        {"threads", flags.threads},
                        {"steps", flags.steps},
                        {"tokens_per_cpu_second", step_tokens * flags.steps / cpu},
                        {"tokens_per_cpu_second_best", step_tokens / best},
                        {"tokens_per_second", step_tokens * flags.steps / wall},
                        {"initialize_cpu_seconds", initialize_seconds},
                        {"arena_bytes", arena->used_bytes()},
                        {"first_loss", first_loss},
                        {"last_loss", loss}};
}

}  // namespace
}  // namespace llmctl

int main(int argc, char** argv) {
  llmctl::Flags flags;
  CLI::App app("Measures training steps of the engine alone");
  app.add_option("--model", flags.model)->check(CLI::IsMember({"tiny", "small"}));
  app.add_option("--dtype", flags.dtype)->check(CLI::IsMember({"fp32", "bf16"}));
  app.add_option("--isa", flags.isa)->check(CLI::IsMember({"best", "avx2", "avx512"}));
  app.add_option("--steps", flags.steps)->check(CLI::PositiveNumber);
  app.add_option("--warmup-steps", flags.warmup_steps)->check(CLI::NonNegativeNumber);
  app.add_option("--micro-batches", flags.micro_batches)->check(CLI::PositiveNumber);
  app.add_option("--threads", flags.threads)->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);

  at::set_num_threads(flags.threads);
  absl::StatusOr<nlohmann::json> result = llmctl::Measure(flags);
  if (!result.ok()) {
    std::fprintf(stderr, "%s\n", std::string(result.status().message()).c_str());
    return EXIT_FAILURE;
  }
  std::printf("%s\n", result->dump().c_str());
  return EXIT_SUCCESS;
}
