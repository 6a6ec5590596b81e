#include <memory>
#include <string>

#include <CLI/CLI.hpp>

#include "worker/data/command/command.h"
#include "worker/data/pipeline/prepare_corpus.h"

namespace llmctl::data {

Verb AddWork(CLI::App& app) {
  struct Flags {
    std::string folder;
    int board = -1;
    ProcessLimits limits;
  };
  auto flags = std::make_shared<Flags>();
  // Not for people: `prepare` starts it.
  CLI::App* verb = app.add_subcommand("work", "")->group("");
  verb->add_option("--folder", flags->folder)->required();
  verb->add_option("--board", flags->board)->required();
  verb->add_option("--threads", flags->limits.threads)->required();
  verb->add_option("--memory-bytes", flags->limits.memory_bytes)->required();
  return {verb, [flags] { return Report(TakePart(flags->folder, flags->board, flags->limits)); }};
}

}  // namespace llmctl::data
