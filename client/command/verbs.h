// The verbs of llmctl: what each can be told, and the function that does it (a file per verb).
//
// A verb prints its result to session.out and returns how llmctl ends; an error status is explained by main.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "client/command/exit_code.h"
#include "client/command/session.h"

namespace llmctl::client {

struct SubmitOptions {
  std::string file;  // "-" is standard input
  bool follow = false;
  bool dry_run = false;
  std::string idempotency_key;  // empty: a random one
  std::string name;             // instead of metadata.name
};
absl::StatusOr<ExitCode> Submit(const SubmitOptions& options, Session& session);

absl::StatusOr<ExitCode> Validate(const std::vector<std::string>& files, Session& session);

struct ListOptions {
  std::string project;
  std::vector<std::string> phases;
  std::vector<std::string> labels;  // name=value
  int limit = 100;
};
absl::StatusOr<ExitCode> List(const ListOptions& options, Session& session);

// `job` is an id ("j-17") or the name of the newest job so called, here and below.
absl::StatusOr<ExitCode> Get(const std::string& job, Session& session);
absl::StatusOr<ExitCode> Follow(const std::string& job, Session& session);
absl::StatusOr<ExitCode> Wait(const std::string& job, absl::Duration timeout, Session& session);

struct LogsOptions {
  std::string job;
  int rank = 0;
  int64_t attempt = 0;  // 0: the newest
  bool follow = false;
  bool error_stream = false;
};
absl::StatusOr<ExitCode> Logs(const LogsOptions& options, Session& session);

struct DiagnoseOptions {
  std::string job;
  int64_t attempt = 0;  // 0: the newest that has left evidence
  std::string save;     // a folder for the archives; empty: they are not kept
  bool stacks = false;  // of all threads, not only the main one
};
absl::StatusOr<ExitCode> Diagnose(const DiagnoseOptions& options, Session& session);

absl::StatusOr<ExitCode> Cancel(const std::string& job, const std::string& reason, Session& session);
absl::StatusOr<ExitCode> Suspend(const std::string& job, Session& session);
absl::StatusOr<ExitCode> Resume(const std::string& job, Session& session);
absl::StatusOr<ExitCode> Delete(const std::string& job, Session& session);
absl::StatusOr<ExitCode> Events(const std::string& job, Session& session);
absl::StatusOr<ExitCode> Checkpoints(const std::string& job, Session& session);

absl::StatusOr<ExitCode> ListNodes(Session& session);
struct NodeOptions {
  std::string node;
  std::string reason;
  absl::Duration deadline = absl::InfiniteDuration();  // infinite: the coordinator's default
  bool wait = false;
};
absl::StatusOr<ExitCode> GetNode(const NodeOptions& options, Session& session);
absl::StatusOr<ExitCode> NodeStrikes(const NodeOptions& options, Session& session);
absl::StatusOr<ExitCode> CordonNode(const NodeOptions& options, Session& session);
absl::StatusOr<ExitCode> UncordonNode(const NodeOptions& options, Session& session);
absl::StatusOr<ExitCode> DrainNode(const NodeOptions& options, Session& session);

// All pages of it.
absl::StatusOr<v1::ListNodesReply> ListAllNodes(Session& session);
// Of llmctl, and of the cluster if there is one.
absl::StatusOr<ExitCode> Version(Session& session);

// Into a file, or a file of its own in a folder.
absl::StatusOr<ExitCode> AdminBackup(const std::string& target, Session& session);
struct RestoreOptions {
  std::string file;
  std::string data_directory;              // of the coordinator; empty: of the local cluster
  std::string local_directory = ".llmctl";
  bool force = false;
};
// Becomes llm-coordinator; returns only if that is not possible.
absl::StatusOr<ExitCode> AdminRestore(const RestoreOptions& options);
absl::StatusOr<ExitCode> AdminQuarantine(Session& session);
absl::StatusOr<ExitCode> AdminRelease(const std::string& entity, Session& session);

struct GenerateOptions {
  std::string job;
  // Handed to `llm-trainer generate` as they are; empty: its default.
  std::string prompt;
  std::string tokens;
  std::string temperature;
  std::string seed;
};
// Becomes llm-trainer; returns only if that is not possible.
absl::StatusOr<ExitCode> Generate(const GenerateOptions& options, Session& session);

// Becomes llm-data with these arguments; returns only if that is not possible.
absl::StatusOr<ExitCode> Data(std::vector<std::string> arguments);

struct LocalOptions {
  std::string directory = ".llmctl";
  int workers = 2;
  int devices_per_worker = 1;
  absl::Duration lease = absl::Seconds(2);
  bool foreground = false;
  bool keep_jobs = false;
  bool yes = false;  // asks nothing
};
absl::StatusOr<ExitCode> LocalUp(const LocalOptions& options, Session& session);
absl::StatusOr<ExitCode> LocalDown(const LocalOptions& options, Session& session);
absl::StatusOr<ExitCode> LocalStatus(const LocalOptions& options, Session& session);

}  // namespace llmctl::client
