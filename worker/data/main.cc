// llm-data: text in, token shards out. Its verbs are in command/.

#include <vector>

#include <CLI/CLI.hpp>

#include "worker/data/command/command.h"

namespace llmctl::data {
namespace {

int Main(int argc, char** argv) {
  CLI::App app("llm-data: text in, token shards out");
  app.require_subcommand(1);
  const std::vector<Verb> verbs = {AddPrepare(app), AddExplain(app), AddRethreshold(app), AddInspect(app),
                                   AddSample(app),  AddDiff(app),    AddVerify(app),      AddTokenizer(app),
                                   AddLm(app),      AddWork(app)};
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // CLI11 reports through exceptions only; --help is one of them.
    return app.exit(error) == 0 ? kOk : kUsage;
  }
  for (const Verb& verb : verbs) {
    if (app.got_subcommand(verb.command)) return verb.run();
  }
  return kUsage;
}

}  // namespace
}  // namespace llmctl::data

int main(int argc, char** argv) { return llmctl::data::Main(argc, argv); }
