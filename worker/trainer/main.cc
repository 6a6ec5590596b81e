// llm-trainer: one process per device. Flags and wiring; the only place that catches exceptions (LibTorch's) and
// turns every outcome into an exit code of worker/contract/exit_codes.h.
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <system_error>
#include <thread>

#include <CLI/CLI.hpp>
#include <torch/version.h>
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

#include "common/base/failpoint.h"
#include "common/base/shown_command_line.h"
#include "common/base/status.h"
#include "worker/contract/messages.h"
#include "worker/contract/shim_config.h"
#include "worker/trainer/failure.h"
#include "worker/trainer/generate_command.h"
#include "worker/trainer/preflight.h"
#include "worker/trainer/standby.h"
#include "worker/trainer/train_command.h"

namespace llmctl::trainer {
namespace {

// Written by the signal handler, which can reach nothing else.
std::atomic<bool> terminated = false;

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// What libraries take from the environment when they are first used. Before any thread starts.
void SetDefaults() {
  // c10d's own recorder of collectives; ours is worker/contract/collective_ring.h.
  setenv("TORCH_FR_BUFFER_SIZE", "0", /*overwrite=*/0);
}

// What they take when they are loaded.
void RestartWithDefaults(char** argv) {
  // Spinning threads make two slower than one on a busy machine. OpenMP has read its environment by now, hence a
  // second start; an agent sets this, so that it is rare.
  if (!Environment("OMP_WAIT_POLICY").empty()) return;
  setenv("OMP_WAIT_POLICY", "passive", /*overwrite=*/0);
  execv("/proc/self/exe", argv);
  // Where /proc is missing the process is slower, not wrong.
}

int Threads() {
  int threads = 0;
  if (absl::SimpleAtoi(Environment("OMP_NUM_THREADS"), &threads) && threads > 0) return threads;
  return static_cast<int>(std::thread::hardware_concurrency());
}

// In one call, so that lines of threads never run into each other.
void PrintLine(std::FILE* stream, absl::string_view text) {
  std::string line = absl::StrCat(text, "\n");
  std::fwrite(line.data(), 1, line.size(), stream);
  std::fflush(stream);
}

Log ToStandardStreams() {
  return {.line = [](absl::string_view line) { PrintLine(stdout, line); },
          .alarm =
              [](absl::string_view line) {
                PrintLine(stdout, line);
                PrintLine(stderr, line);
              }};
}

// Null outside a job.
absl::StatusOr<std::unique_ptr<ShimLink>> LinkFromEnvironment() {
  std::string text = Environment(contract::kShimFdVariable);
  if (text.empty()) return nullptr;
  int fd = -1;
  if (!absl::SimpleAtoi(text, &fd) || fd < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(contract::kShimFdVariable, ": expected a file descriptor, found ", text));
  }
  return std::make_unique<ShimLink>(fd);
}

using Command = std::function<absl::StatusOr<contract::ExitCode>()>;

absl::StatusOr<contract::ExitCode> CatchExceptions(const Command& command) {
  try {
    return command();
  } catch (const std::bad_alloc&) {
    return WithExitCode(absl::ResourceExhaustedError("out of memory"), contract::kExitOutOfMemory);
  } catch (const std::exception& error) {
    return absl::InternalError(error.what());
  }
}

// The exit code; an error is said on standard error and to the shim.
int Conclude(const absl::StatusOr<contract::ExitCode>& outcome, ShimLink* link) {
  if (outcome.ok()) return *outcome;
  contract::ExitCode code = ExitCodeOf(outcome.status());
  std::string message(outcome.status().message().substr(0, kMessageBytesMax));
  PrintLine(stderr, absl::StrCat("llm-trainer: ", FailureClass(code), ": ", message));
  if (link != nullptr) SayFatal(*link, outcome.status());
  return code;
}

int RunTrain(const TrainOptions& options) {
  std::signal(SIGTERM, [](int) { terminated = true; });
  absl::StatusOr<std::unique_ptr<ShimLink>> link = LinkFromEnvironment();
  if (!link.ok()) return Conclude(link.status(), nullptr);
  Log log = ToStandardStreams();
  return Conclude(CatchExceptions([&] { return Train(options, link->get(), terminated, log); }), link->get());
}

// What the environment says to us.
absl::StatusOr<engine::kernels::Isa> ReadSettings() {
  LLM_RETURN_IF_ERROR(ArmFailpoints(Environment("LLM_FAILPOINTS"), Environment("LLM_FAILPOINT_COUNTS")));
  return engine::kernels::ParseIsa(Environment("LLM_ISA"));
}

// As RunTrain once there is a job; the shim's directory, which has its files, is the working directory.
int RunStandby(TrainOptions options, const std::string& program, ShownCommandLine& shown) {
  int shim_fd = -1;
  if (!absl::SimpleAtoi(Environment(contract::kShimFdVariable), &shim_fd)) {
    return Conclude(absl::InvalidArgumentError("a standby is started by llm-shim"), nullptr);
  }
  absl::StatusOr<bool> job = AwaitJob(shim_fd);
  if (!job.ok()) return Conclude(job.status(), nullptr);
  if (!*job) return contract::kExitOk;
  absl::Status environment = TakeEnvironment(contract::kShimConfigFile, shim_fd);
  if (!environment.ok()) return Conclude(environment, nullptr);
  SetDefaults();
  std::error_code error;
  std::string path = (std::filesystem::current_path(error) / contract::kTrainerConfigFile).string();
  shown.Replace({program, "train", absl::StrCat("--config=", path)});
  options.config_path = path;
  options.threads = Threads();
  absl::StatusOr<engine::kernels::Isa> isa = ReadSettings();
  if (!isa.ok()) return Conclude(isa.status(), nullptr);
  options.isa = *isa;
  return RunTrain(options);
}

int RunGenerate(const GenerateOptions& options) {
  auto print = [](absl::string_view text) {
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
  };
  print(options.prompt);
  return Conclude(CatchExceptions([&]() -> absl::StatusOr<contract::ExitCode> {
                    LLM_RETURN_IF_ERROR(Generate(options, print));
                    print("\n");
                    return contract::kExitOk;
                  }),
                  nullptr);
}

// Of an idle host: whatever else runs there goes first, and it does not outlive the agent that asked for it.
int RunPreflightCommand(const PreflightOptions& options) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  setpriority(PRIO_PROCESS, 0, 19);
  return Conclude(CatchExceptions([&]() -> absl::StatusOr<contract::ExitCode> {
                    PrintLine(stdout, contract::EncodePreflight(RunPreflight(options)));
                    return contract::kExitOk;
                  }),
                  nullptr);
}

int Main(int argc, char** argv) {
  SetDefaults();
  RestartWithDefaults(argv);
  ShownCommandLine shown(argc, argv);
  const std::string program = argv[0];
  absl::StatusOr<engine::kernels::Isa> isa = ReadSettings();
  if (!isa.ok()) return Conclude(isa.status(), nullptr);

  CLI::App app("llm-trainer: trains a model on one device, usually as one rank of a job");
  app.require_subcommand(1);
  TrainOptions train_options = {
      .threads = Threads(), .isa = *isa, .pictures = !Environment(contract::kPicturesVariable).empty()};
  CLI::App* train = app.add_subcommand("train", "Train; under a shim as a rank of a job, otherwise alone");
  train->add_option("--config", train_options.config_path, "Trainer configuration (JSON)")->required();
  train->add_option("--generation", train_options.generation, "Generation of a run alone: names its checkpoints");

  std::string future_config;
  CLI::App* standby = app.add_subcommand("standby", "Wait under a shim, loaded, for a job to train");
  standby->add_option("--config", future_config, "Where the configuration will be, for who looks at processes");

  GenerateOptions generate_options = {.isa = *isa};
  CLI::App* generate = app.add_subcommand("generate", "Continue a text with a checkpoint's weights");
  generate->add_option("--checkpoint", generate_options.checkpoint, "Checkpoint directory")->required();
  generate->add_option("--dataset", generate_options.dataset, "Dataset directory, for its tokenizer")->required();
  generate->add_option("--prompt", generate_options.prompt, "Text to continue");
  generate->add_option("--tokens", generate_options.tokens, "Tokens to add at most")->check(CLI::NonNegativeNumber);
  generate->add_option("--context", generate_options.context, "Tokens to look back on")->check(CLI::PositiveNumber);
  generate->add_option("--temperature", generate_options.sampling.temperature, "0: always the likeliest token")
      ->check(CLI::NonNegativeNumber);
  generate->add_option("--top-k", generate_options.sampling.top_k, "Choose among the k likeliest; 0: all")
      ->check(CLI::NonNegativeNumber);
  generate->add_option("--seed", generate_options.seed, "Same seed, same text");
  generate->add_option("--precision", generate_options.precision, "fp32 or bf16");

  PreflightOptions preflight_options;
  CLI::App* preflight = app.add_subcommand("preflight", "Test this host; prints what was found as JSON");
  preflight->add_option("--directory", preflight_options.directory, "A folder on the disk to be tested")->required();
  preflight->add_option("--devices", preflight_options.devices, "How many devices there are")
      ->check(CLI::PositiveNumber);
  preflight->add_option("--device-kind", preflight_options.device_kind, "cpu or cuda");

  CLI::App* version = app.add_subcommand("version", "Print the version");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? contract::kExitOk : contract::kExitConfig;
  }
  if (version->parsed()) {
    PrintLine(stdout, absl::StrCat("llm-trainer ", LLM_VERSION, " (contract ", contract::kVersion, ", libtorch ",
                                   TORCH_VERSION, ", ", engine::kernels::IsaName(*isa), ")"));
    return contract::kExitOk;
  }
  if (standby->parsed()) return RunStandby(train_options, program, shown);
  if (preflight->parsed()) return RunPreflightCommand(preflight_options);
  return generate->parsed() ? RunGenerate(generate_options) : RunTrain(train_options);
}

}  // namespace
}  // namespace llmctl::trainer

int main(int argc, char** argv) {
  int code = llmctl::trainer::Main(argc, argv);
  // Peers and agent wait for this process to be gone, and nothing of ours is left to be destroyed: LibTorch's globals
  // only cost time.
  std::fflush(nullptr);
  _exit(code);
}
