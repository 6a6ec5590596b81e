#include "client/grammar.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdint>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

#include "client/cluster/address.h"
#include "client/cluster/cluster.h"
#include "client/command/verbs.h"
#include "common/spec/duration.h"

namespace llmctl::client {
namespace {

constexpr char kDescription[] = "llmctl trains language models on a cluster of workers.";
constexpr char kFooter[] =
    "Where the coordinator is: --coordinator, or LLMCTL_COORDINATOR, or the local cluster of this folder\n"
    "(.llmctl, see `llmctl local up`), or 127.0.0.1:7600.\n"
    "\n"
    "Exit codes: 0 fine; 1 the job failed; 2 bad command line or file; 3 not found; 4 coordinator unreachable;\n"
    "5 the job was cancelled; 6 not possible in the present state; 7 any other error.\n"
    "\n"
    "Start here:\n"
    "  llmctl local up\n"
    "  llmctl submit --follow examples/quickstart.yaml\n";

using Verb = std::function<absl::StatusOr<ExitCode>(Session&)>;

// What the flags are parsed into; lives as long as the parser.
struct Parsed {
  std::string coordinator;
  Format format = Format::kTable;
  absl::Duration timeout = absl::Seconds(10);
  Verb verb;

  std::string job;  // of the verbs that take one and little else
  std::string reason;
  absl::Duration wait_timeout = absl::InfiniteDuration();
  std::vector<std::string> files;
  SubmitOptions submit;
  ListOptions list;
  LogsOptions logs;
  DiagnoseOptions diagnose;
  GenerateOptions generate;
  LocalOptions local;
  NodeOptions node;
  std::string target;  // of the admin verbs
  RestoreOptions restore;
};

void AddDuration(CLI::App& app, const std::string& name, absl::Duration& target, const std::string& help) {
  auto set = [&target](const std::string& text) { target = *spec::ParseDuration(text); };
  auto check = [](const std::string& text) { return std::string(spec::ParseDuration(text).status().message()); };
  app.add_option_function<std::string>(name, set, help)->check(CLI::Validator(check, ""))->type_name("DURATION");
}

// A whole number, not negative.
CLI::Validator IsCount() { return CLI::Range(int64_t{0}, int64_t{1} << 53).description(""); }

CLI::App& AddVerb(CLI::App& app, const std::string& name, const std::string& help, const std::string& examples) {
  CLI::App& verb = *app.add_subcommand(name, help);
  verb.footer(absl::StrCat("Examples:\n", examples));
  return verb;
}

void AddJob(CLI::App& verb, std::string& target) {
  verb.add_option("JOB", target, "Id of the job (j-17), or name of the newest job so called")->required();
}

using JobVerb = absl::StatusOr<ExitCode> (*)(const std::string&, Session&);

void AddJobVerb(CLI::App& app, Parsed& parsed, const std::string& name, JobVerb run, const std::string& help) {
  CLI::App& verb = AddVerb(app, name, help, absl::StrCat("  llmctl ", name, " quickstart\n  llmctl ", name, " j-17\n"));
  AddJob(verb, parsed.job);
  verb.callback([&parsed, run] { parsed.verb = [&parsed, run](Session& s) { return run(parsed.job, s); }; });
}

void AddSubmit(CLI::App& app, Parsed& parsed) {
  CLI::App& verb = AddVerb(app, "submit", "Submit a job",
                           "  llmctl submit --follow examples/quickstart.yaml\n"
                           "  llmctl submit --dry-run job.yaml\n"
                           "  llmctl submit job.yaml -o json | jq -r .id\n"
                           "  sed 's/seed: 1/seed: 2/' job.yaml | llmctl submit --name=seed-2 -\n");
  SubmitOptions& o = parsed.submit;
  verb.add_option("FILE", o.file, "Job specification (examples/reference.yaml shows all fields); - is standard input")
      ->required();
  verb.add_flag("--follow", o.follow, "Show progress until the job has ended; its exit code is llmctl's");
  verb.add_flag("--dry-run", o.dry_run, "Let the coordinator check the job, but do not submit it");
  verb.add_option("--idempotency-key", o.idempotency_key, "The same key with the same job is the same submission")
      ->type_name("KEY");
  verb.add_option("--name", o.name, "Name of the job instead of metadata.name")->type_name("NAME");
  verb.callback([&parsed] { parsed.verb = [&parsed](Session& s) { return Submit(parsed.submit, s); }; });
}

void AddValidate(CLI::App& app, Parsed& parsed) {
  CLI::App& verb = AddVerb(app, "validate", "Check job specifications; needs no coordinator",
                           "  llmctl validate job.yaml\n  llmctl validate examples/*.yaml\n");
  verb.add_option("FILE", parsed.files, "Job specifications; - is standard input")->required();
  verb.callback([&parsed] { parsed.verb = [&parsed](Session& s) { return Validate(parsed.files, s); }; });
}

void AddList(CLI::App& app, Parsed& parsed) {
  CLI::App& verb = AddVerb(app, "list", "List jobs, newest first",
                           "  llmctl list\n  llmctl list --phase=running --phase=queued\n"
                           "  llmctl list --project=research -l team=language -o json\n");
  ListOptions& o = parsed.list;
  verb.add_option("--project", o.project, "Only jobs of this project")->type_name("NAME");
  verb.add_option("--phase", o.phases, "Only jobs in this phase; may be given again")->type_name("PHASE")->take_all();
  verb.add_option("-l,--label", o.labels, "Only jobs with this label; may be given again")
      ->type_name("NAME=VALUE")
      ->take_all();
  verb.add_option("--limit", o.limit, "At most so many")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000000).description(""))
      ->type_name("N");
  verb.callback([&parsed] { parsed.verb = [&parsed](Session& s) { return List(parsed.list, s); }; });
}

void AddLogs(CLI::App& app, Parsed& parsed) {
  CLI::App& verb = AddVerb(app, "logs", "Print the log of one rank of a job",
                           "  llmctl logs quickstart\n  llmctl logs quickstart --rank=1 -f\n"
                           "  llmctl logs j-17 --attempt=1 --stderr\n");
  LogsOptions& o = parsed.logs;
  AddJob(verb, o.job);
  verb.add_flag("-f,--follow", o.follow, "Go on until the job has ended, through its attempts");
  verb.add_option("--rank", o.rank, "Which rank")
      ->capture_default_str()
      ->check(IsCount())
      ->type_name("N");
  verb.add_option("--attempt", o.attempt, "Which attempt; the newest if not given")
      ->check(IsCount())
      ->type_name("N");
  verb.add_flag("--stderr", o.error_stream, "The error stream instead of the output");
  verb.callback([&parsed] { parsed.verb = [&parsed](Session& s) { return Logs(parsed.logs, s); }; });
}

void AddDiagnose(CLI::App& app, Parsed& parsed) {
  CLI::App& verb = AddVerb(app, "diagnose", "Say why an attempt of a job ended badly, and where its ranks were",
                           "  llmctl diagnose quickstart\n  llmctl diagnose j-17 --attempt=1 --stacks\n"
                           "  llmctl diagnose j-17 --save=evidence\n");
  DiagnoseOptions& o = parsed.diagnose;
  AddJob(verb, o.job);
  verb.add_option("--attempt", o.attempt, "Which attempt; the newest that has ended badly if not given")
      ->check(IsCount())
      ->type_name("N");
  verb.add_flag("--stacks", o.stacks, "The stacks of all threads, not only of the main one");
  verb.add_option("--save", o.save, "Keep the archives, one per host, in this folder")->type_name("DIR");
  verb.callback([&parsed] { parsed.verb = [&parsed](Session& s) { return Diagnose(parsed.diagnose, s); }; });
}

void AddCancel(CLI::App& app, Parsed& parsed) {
  CLI::App& verb = AddVerb(app, "cancel", "End a job for good; its checkpoints stay",
                           "  llmctl cancel quickstart\n  llmctl cancel j-17 --reason='wrong data'\n");
  AddJob(verb, parsed.job);
  verb.add_option("--reason", parsed.reason, "Why, for those who look later")->type_name("TEXT");
  verb.callback([&parsed] { parsed.verb = [&parsed](Session& s) { return Cancel(parsed.job, parsed.reason, s); }; });
}

void AddWait(CLI::App& app, Parsed& parsed) {
  CLI::App& verb = AddVerb(app, "wait", "Wait until a job has ended; its exit code is llmctl's",
                           "  llmctl wait quickstart && echo trained\n  llmctl wait j-17 --timeout=1h\n");
  AddJob(verb, parsed.job);
  AddDuration(verb, "--timeout", parsed.wait_timeout, "Give up after this long (exit code 7)");
  verb.callback([&parsed] {
    parsed.verb = [&parsed](Session& s) { return Wait(parsed.job, parsed.wait_timeout, s); };
  });
}

void AddGenerate(CLI::App& app, Parsed& parsed) {
  CLI::App& verb = AddVerb(app, "generate", "Let the model of a job's last checkpoint write",
                           "  llmctl generate quickstart --prompt='In Debian, '\n"
                           "  llmctl generate j-17 --prompt='Once' --tokens=100 --temperature=0.8 --seed=1\n");
  GenerateOptions& o = parsed.generate;
  AddJob(verb, o.job);
  verb.add_option("--prompt", o.prompt, "What the text begins with")->type_name("TEXT");
  verb.add_option("--tokens", o.tokens, "How many tokens to write")->check(IsCount())->type_name("N");
  verb.add_option("--temperature", o.temperature, "0 takes the likeliest token each time")
      ->check(CLI::NonNegativeNumber.description(""))
      ->type_name("X");
  verb.add_option("--seed", o.seed, "The same seed writes the same text")->check(IsCount())->type_name("N");
  verb.callback([&parsed] { parsed.verb = [&parsed](Session& s) { return Generate(parsed.generate, s); }; });
}

void AddData(CLI::App& app, Parsed& parsed) {
  CLI::App& verb = AddVerb(app, "data", "Prepare and inspect datasets (runs llm-data with these arguments)",
                           "  llmctl data --help\n"
                           "  llmctl data prepare --input=corpus.jsonl --output=my-data\n");
  // Reached with flags before it (`llmctl -o json data ...`).
  verb.set_help_flag();
  verb.prefix_command();
  verb.callback([&parsed, &verb] {
    parsed.verb = [arguments = verb.remaining()](Session&) { return Data(arguments); };
  });
}

using NodeVerb = absl::StatusOr<ExitCode> (*)(const NodeOptions&, Session&);

CLI::App& AddNodeVerb(CLI::App& nodes, Parsed& parsed, const std::string& name, NodeVerb run, const std::string& help) {
  CLI::App& verb = AddVerb(nodes, name, help, absl::StrCat("  llmctl nodes ", name, " host-3\n"));
  verb.add_option("NODE", parsed.node.node, "Name of the host, as `llmctl nodes` shows it")->required();
  verb.callback([&parsed, run] { parsed.verb = [&parsed, run](Session& s) { return run(parsed.node, s); }; });
  return verb;
}

void AddNodes(CLI::App& app, Parsed& parsed) {
  CLI::App& nodes = AddVerb(app, "nodes", "Show hosts and their devices, and what they may do",
                            "  llmctl nodes\n  llmctl nodes -o json\n  llmctl nodes get host-3\n"
                            "  llmctl nodes strikes host-3\n"
                            "  llmctl nodes drain host-3 --deadline=10m --reason='new disks' --wait\n"
                            "  llmctl nodes uncordon host-3\n"
                            "\n"
                            "Exit codes: 0 done; 2 bad command line; 3 no such host; 4 coordinator unreachable;\n"
                            "6 not drained yet when --wait gave up.\n");
  nodes.require_subcommand(0, 1);
  auto list = [&parsed] { parsed.verb = ListNodes; };
  // Alone it lists; the callback of an application comes after those of its subcommands.
  nodes.callback([&nodes, list] {
    if (nodes.get_subcommands().empty()) list();
  });
  AddVerb(nodes, "list", "List all hosts", "  llmctl nodes list\n  llmctl nodes list -o json\n").callback(list);
  AddNodeVerb(nodes, parsed, "get", GetNode, "Show all about a host");
  AddNodeVerb(nodes, parsed, "strikes", NodeStrikes, "Show what speaks against a host, newest first");
  CLI::App& cordon =
      AddNodeVerb(nodes, parsed, "cordon", CordonNode, "No new ranks on a host; what runs there goes on");
  AddNodeVerb(nodes, parsed, "uncordon", UncordonNode, "Let a host take ranks again, whatever kept it from it");
  CLI::App& drain = AddNodeVerb(nodes, parsed, "drain", DrainNode,
                                "Empty a host: its jobs save a checkpoint and go on elsewhere");
  for (CLI::App* verb : {&cordon, &drain}) {
    verb->add_option("--reason", parsed.node.reason, "Why, for those who look later")->type_name("TEXT");
  }
  AddDuration(drain, "--deadline", parsed.node.deadline,
              "Stop what has not left by then (5m if not given)");
  drain.add_flag("--wait", parsed.node.wait, "Return when the host is drained, or when it should have been long ago");
}

using LocalVerb = absl::StatusOr<ExitCode> (*)(const LocalOptions&, Session&);

void SetLocalVerb(CLI::App& verb, Parsed& parsed, LocalVerb run) {
  verb.add_option("--dir", parsed.local.directory, "Folder of the cluster's state and logs")
      ->capture_default_str()
      ->type_name("DIR");
  verb.callback([&parsed, run] { parsed.verb = [&parsed, run](Session& s) { return run(parsed.local, s); }; });
}

void AddLocal(CLI::App& app, Parsed& parsed) {
  CLI::App& local = AddVerb(app, "local", "A whole cluster on this machine",
                            "  llmctl local up --workers=4\n  llmctl local status\n  llmctl local down\n");
  local.require_subcommand(1);
  CLI::App& up =
      AddVerb(local, "up", "Start a coordinator and workers, restarted when they end; fine if they are up already",
              "  llmctl local up\n  llmctl local up --workers=4 --devices-per-worker=2\n");
  SetLocalVerb(up, parsed, LocalUp);
  LocalOptions& o = parsed.local;
  up.add_option("--workers", o.workers, "Worker daemons")
      ->capture_default_str()
      ->check(CLI::Range(1, 1024).description(""))
      ->type_name("N");
  up.add_option("--devices-per-worker", o.devices_per_worker, "CPU devices of each")
      ->capture_default_str()
      ->check(CLI::Range(1, 1024).description(""))
      ->type_name("N");
  AddDuration(up, "--lease", o.lease, "A worker that is silent for so long is lost (2s if not given)");
  up.add_flag("--foreground", o.foreground, "Supervise in this process until Ctrl-C, instead of in the background");
  CLI::App& down = AddVerb(local, "down", "Cancel the jobs and stop the cluster",
                           "  llmctl local down\n  llmctl local down --keep-jobs\n");
  SetLocalVerb(down, parsed, LocalDown);
  down.add_flag("--keep-jobs", o.keep_jobs, "Leave trainers running; the next `local up` takes over again");
  down.add_flag("-y,--yes", o.yes, "Do not ask before cancelling jobs");
  SetLocalVerb(AddVerb(local, "status", "Show the daemons", "  llmctl local status\n"), parsed, LocalStatus);
}

void AddRestore(CLI::App& admin, Parsed& parsed) {
  CLI::App& verb = AddVerb(admin, "restore", "Make a coordinator's store anew from a backup; it must not be running",
                           "  llmctl local down --keep-jobs\n"
                           "  llmctl admin restore llmctl-20260501-093000.backup --force\n"
                           "  llmctl admin restore /backups/store.backup --data-dir=/var/lib/llmctl\n");
  RestoreOptions& o = parsed.restore;
  verb.add_option("FILE", o.file, "A file made by `llmctl admin backup`")->required();
  verb.add_option("--data-dir", o.data_directory, "The coordinator's --data-dir, instead of the local cluster's")
      ->type_name("DIR");
  verb.add_option("--dir", o.local_directory, "Folder of the local cluster")->capture_default_str()->type_name("DIR");
  verb.add_flag("--force", o.force, "Even if the store has jobs: it is moved aside, and what it knows is forgotten");
  verb.callback([&parsed] { parsed.verb = [&parsed](Session&) { return AdminRestore(parsed.restore); }; });
}

void AddAdmin(CLI::App& app, Parsed& parsed) {
  CLI::App& admin = AddVerb(app, "admin", "Look after the coordinator",
                            "  llmctl admin backup /backups\n  llmctl admin quarantine\n");
  admin.require_subcommand(1);
  CLI::App& backup = AddVerb(admin, "backup", "Copy the coordinator's store while it runs",
                             "  llmctl admin backup store.backup\n  llmctl admin backup /backups\n");
  backup.add_option("TARGET", parsed.target, "The file to write, or a folder for a file named after the time")
      ->required();
  backup.callback([&parsed] { parsed.verb = [&parsed](Session& s) { return AdminBackup(parsed.target, s); }; });
  AddRestore(admin, parsed);
  CLI::App& quarantine = AddVerb(admin, "quarantine", "List what is kept apart because it crashed the coordinator",
                                 "  llmctl admin quarantine\n  llmctl admin quarantine -o json\n");
  quarantine.callback([&parsed] { parsed.verb = AdminQuarantine; });
  CLI::App& release = AddVerb(admin, "release", "Give something in quarantine another chance",
                              "  llmctl admin release 'node host-3'\n  llmctl admin release 'job j-17'\n");
  release.add_option("ENTITY", parsed.target, "As `llmctl admin quarantine` shows it")->required();
  release.callback([&parsed] { parsed.verb = [&parsed](Session& s) { return AdminRelease(parsed.target, s); }; });
}

void AddGlobalFlags(CLI::App& app, Parsed& parsed) {
  static const std::map<std::string, Format> kFormats{
      {"table", Format::kTable}, {"json", Format::kJson}, {"yaml", Format::kYaml}};
  app.add_option("--coordinator", parsed.coordinator, "Where the coordinator is: HOST:PORT, or @FILE that holds it")
      ->type_name("ADDRESS");
  app.add_option_function<std::string>(
         "-o,--output", [&parsed](const std::string& name) { parsed.format = kFormats.at(name); },
         "How results are printed: table, json or yaml")
      ->check(CLI::IsMember({"table", "json", "yaml"}, CLI::ignore_case).description(""))
      ->type_name("FORMAT");
  AddDuration(app, "--timeout", parsed.timeout, "How long to try to reach the coordinator (10s if not given)");
}

void AddVerbs(CLI::App& app, Parsed& parsed) {
  AddSubmit(app, parsed);
  AddValidate(app, parsed);
  AddList(app, parsed);
  AddJobVerb(app, parsed, "get", Get, "Show all about a job");
  AddJobVerb(app, parsed, "follow", Follow, "Show the progress of a job until it has ended");
  AddLogs(app, parsed);
  AddDiagnose(app, parsed);
  AddJobVerb(app, parsed, "events", Events, "Show what happened to a job, oldest first");
  AddJobVerb(app, parsed, "checkpoints", Checkpoints, "List the committed checkpoints of a job");
  AddWait(app, parsed);
  AddCancel(app, parsed);
  AddJobVerb(app, parsed, "suspend", Suspend, "Checkpoint a job and give its devices back, until it is resumed");
  AddJobVerb(app, parsed, "resume", Resume, "Let a suspended job go on");
  AddJobVerb(app, parsed, "delete", Delete, "Forget a job that has ended; its checkpoints stay");
  AddGenerate(app, parsed);
  AddNodes(app, parsed);
  AddData(app, parsed);
  AddLocal(app, parsed);
  AddAdmin(app, parsed);
  CLI::App& version = AddVerb(app, "version", "Print the builds of llmctl, coordinator and hosts",
                              "  llmctl version\n  llmctl version -o json\n");
  version.callback([&parsed] { parsed.verb = Version; });
}

int TerminalColumns() {
  winsize size = {};
  bool known = ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : 80;
}

int End(const absl::StatusOr<ExitCode>& code) {
  std::cout.flush();
  if (code.ok()) return static_cast<int>(*code);
  std::cerr << "llmctl: " << Explain(code.status()) << "\n";
  return static_cast<int>(ExitCodeOf(code.status()));
}

int RunVerb(const Parsed& parsed, const std::string& environment_address) {
  std::unique_ptr<Cluster> cluster =
      MakeCluster(FindCoordinator(parsed.coordinator, environment_address), parsed.timeout);
  Session session{.cluster = *cluster,
                  .out = std::cout,
                  .err = std::cerr,
                  .format = parsed.format,
                  .terminal = ::isatty(STDOUT_FILENO) == 1,
                  .columns = TerminalColumns()};
  return End(parsed.verb(session));
}

}  // namespace

int RunCommandLine(int argc, char** argv, const std::string& environment_address) {
  // All that follows belongs to llm-data, --help too.
  if (argc > 1 && absl::string_view(argv[1]) == "data") {
    return End(Data(std::vector<std::string>(argv + 2, argv + argc)));
  }
  CLI::App app(kDescription, "llmctl");
  app.footer(kFooter);
  app.require_subcommand(1);
  app.fallthrough();
  Parsed parsed;
  AddGlobalFlags(app, parsed);
  AddVerbs(app, parsed);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    app.exit(error);
    return static_cast<int>(ExitCode::kUsage);
  }
  return RunVerb(parsed, environment_address);
}

}  // namespace llmctl::client
