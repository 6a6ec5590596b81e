// llm-evidence: packs what is left of a gang that ended badly (bundle.h). Started by the agent, in the background.
#include <sys/resource.h>

#include <iostream>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "common/base/instant.h"
#include "common/base/status.h"
#include "worker/agent/evidence/bundle.h"

int main(int argc, char** argv) {
  CLI::App app("Packs what is left of a gang that ended badly into <state-dir>/evidence", "llm-evidence");
  llmctl::agent::BundleSource source;
  std::string job;
  app.add_option("--job", job, "Id of the job")->required();
  app.add_option("--attempt", source.generation.attempt, "Its attempt")->required();
  app.add_option("--generation", source.generation.generation, "Its generation")->required();
  app.add_option("--node", source.node, "Name of this host")->required();
  app.add_option("--state-dir", source.state_dir, "State directory of the agent")->required();
  app.add_option("--rank", source.ranks, "A rank that ran here; may be given again")->required();
  CLI11_PARSE(app, argc, argv);
  source.generation.job = llmctl::JobId(job);

  // Some hundredths of a second, but the next attempt starts on the same cores: it goes first.
  ::setpriority(PRIO_PROCESS, 0, 19);
  llmctl::Instant now = llmctl::Now();
  auto files = llmctl::agent::MakeBundle(source, now);
  absl::Status status = files.ok() ? llmctl::agent::StoreBundle(source, *files, now.wall) : files.status();
  if (status.ok()) return 0;
  std::cerr << "llm-evidence: " << status.message() << "\n";
  return 1;
}
