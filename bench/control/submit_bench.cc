// llm-bench-submit: the measuring part of bench/submit, which starts what is measured. Each verb prints a JSON object.
#include <algorithm>
#include <cstdio>
#include <iostream>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "bench/control/commit_rate.h"
#include "bench/control/launch_times.h"
#include "bench/control/submit_load.h"
#include "common/base/file.h"
#include "common/base/status.h"
#include "common/spec/read_job_spec.h"

namespace llmctl::bench {
namespace {

using nlohmann::json;

struct Flags {
  std::string directory;
  std::string record;
  std::string coordinator;
  std::string spec;
  std::string trainer;
  std::string shims;
  std::string standbys;
  double seconds = 2;
  int clients = 1;
  int jobs = 10;
};

double Milliseconds(absl::Duration duration) { return absl::ToDoubleMilliseconds(duration); }

json ToMilliseconds(const std::vector<absl::Duration>& durations) {
  json out = json::array();
  for (absl::Duration duration : durations) out.push_back(Milliseconds(duration));
  return out;
}

// The smallest that is no less than this share of all.
double Percentile(std::vector<absl::Duration> durations, double share) {
  if (durations.empty()) return 0;
  size_t rank = std::min(durations.size() - 1, static_cast<size_t>(share * static_cast<double>(durations.size())));
  std::nth_element(durations.begin(), durations.begin() + static_cast<ptrdiff_t>(rank), durations.end());
  return Milliseconds(durations[rank]);
}

absl::StatusOr<v1::JobSpec> ReadSpec(const std::string& path) {
  LLM_ASSIGN_OR_RETURN(std::string text, ReadFile(path));
  return spec::ReadJobSpec(text, path);
}

absl::StatusOr<json> Commits(const Flags& flags) {
  LLM_ASSIGN_OR_RETURN(std::string record, ReadFile(flags.record));
  LLM_ASSIGN_OR_RETURN(double per_second,
                       MeasureCommitsPerSecond(flags.directory, record, absl::Seconds(flags.seconds)));
  return json{{"per_s", per_second}};
}

absl::StatusOr<json> Load(const Flags& flags) {
  LoadOptions options = {.coordinator = flags.coordinator, .clients = flags.clients};
  options.time = absl::Seconds(flags.seconds);
  LLM_ASSIGN_OR_RETURN(options.spec, ReadSpec(flags.spec));
  LLM_ASSIGN_OR_RETURN(LoadResult result, SubmitFor(options));
  return json{{"per_s", result.per_second},
              {"submitted", result.latencies.size()},
              {"p50_ms", Percentile(result.latencies, 0.5)},
              {"p99_ms", Percentile(result.latencies, 0.99)}};
}

absl::StatusOr<json> Launch(const Flags& flags) {
  LaunchOptions options = {.coordinator = flags.coordinator,
                           .trainer = flags.trainer,
                           .shims = flags.shims,
                           .standbys = flags.standbys,
                           .jobs = flags.jobs};
  LLM_ASSIGN_OR_RETURN(options.spec, ReadSpec(flags.spec));
  LLM_ASSIGN_OR_RETURN(LaunchTimes times, MeasureLaunches(options));
  return json{{"execve_ms", ToMilliseconds(times.execve)},
              {"first_line_ms", ToMilliseconds(times.first_line)},
              {"bare_start_ms", ToMilliseconds(times.bare_start)}};
}

int Print(const absl::StatusOr<json>& result) {
  if (result.ok()) {
    std::cout << result->dump() << "\n";
    return 0;
  }
  std::cerr << "llm-bench-submit: " << result.status().message() << "\n";
  return 1;
}

int Main(int argc, char** argv) {
  CLI::App app("Measures how fast a coordinator takes jobs, and its disk commits", "llm-bench-submit");
  app.require_subcommand(1);
  Flags flags;
  CLI::App* commits = app.add_subcommand("commits", "Commits of one record a second, one after another");
  commits->add_option("--directory", flags.directory, "On the disk in question")->required();
  commits->add_option("--record", flags.record, "File with the record")->required();
  CLI::App* load = app.add_subcommand("load", "Submissions a second");
  load->add_option("--clients", flags.clients, "Each with one submission under way")->check(CLI::PositiveNumber);
  CLI::App* launch = app.add_subcommand("launch", "From a submission to the trainer's execve and first line");
  launch->add_option("--trainer", flags.trainer, "The program that the agent starts")->required();
  launch->add_option("--shims", flags.shims, "The agent's folder with a directory per rank")->required();
  launch->add_option("--standbys", flags.standbys, "The agent's folder with a directory per warm standby: take one");
  launch->add_option("--jobs", flags.jobs, "One after another")->check(CLI::PositiveNumber);
  for (CLI::App* verb : {commits, load}) verb->add_option("--seconds", flags.seconds, "How long it is measured");
  for (CLI::App* verb : {load, launch}) {
    verb->add_option("--coordinator", flags.coordinator, "host:port")->required();
    verb->add_option("--spec", flags.spec, "job.yaml with absolute paths")->required();
  }
  CLI11_PARSE(app, argc, argv);
  if (commits->parsed()) return Print(Commits(flags));
  return Print(load->parsed() ? Load(flags) : Launch(flags));
}

}  // namespace
}  // namespace llmctl::bench

int main(int argc, char** argv) { return llmctl::bench::Main(argc, argv); }
