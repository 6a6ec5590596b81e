#include <string>
#include <filesystem>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

#include "client/command/spec_file.h"
#include "client/command/verbs.h"
#include "client/command/watching.h"
#include "client/output/progress_view.h"
#include "common/base/file.h"
#include "common/base/status.h"
#include "common/spec/validate.h"

namespace llmctl::client {
namespace {

// Unique per invocation, so that a repeated request is known for a repetition.
absl::StatusOr<std::string> RandomKey() {
  LLM_ASSIGN_OR_RETURN(std::string uuid, ReadFile("/proc/sys/kernel/random/uuid"));
  return absl::StrCat("llmctl-", absl::StripAsciiWhitespace(uuid));
}

void PrintSubmitted(const v1::SubmitReply& reply, const SubmitOptions& options, std::ostream& out) {
  const v1::Job& job = reply.job();
  if (options.dry_run) {
    out << job.name() << " is valid and would be " << PhaseName(job.phase());
    if (!job.reason().empty()) out << ": " << job.reason();
    out << "\n";
    return;
  }
  out << (reply.already_existed() ? "was submitted before: " : "submitted ") << job.id() << " " << job.name() << "\n";
  if (!options.follow) out << "  follow it: llmctl follow " << job.id() << "\n";
}

// The request may have been taken though no answer says so; only the same key makes a repetition of it the same job.
absl::Status WithKey(const absl::Status& refused, const std::string& key) {
  switch (refused.code()) {
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kCancelled:
    case absl::StatusCode::kUnknown:
    case absl::StatusCode::kInternal:
      return absl::Status(refused.code(), absl::StrCat(refused.message(), "\nIf you repeat it, --idempotency-key=", key,
                                                       " makes sure that it is one job."));
    default:
      return refused;
  }
}

}  // namespace

absl::StatusOr<ExitCode> Submit(const SubmitOptions& options, Session& session) {
  absl::StatusOr<v1::JobSpec> spec = ReadSpecFile(options.file);
  if (!spec.ok() && absl::IsInvalidArgument(spec.status())) {
    session.err << spec.status().message() << "\n";
    return ExitCode::kUsage;
  }
  LLM_RETURN_IF_ERROR(spec.status());
  if (!options.name.empty()) spec->mutable_metadata()->set_name(options.name);
  MakePathsAbsolute(std::filesystem::current_path().string(), *spec);
  LLM_RETURN_IF_ERROR(Annotate(spec::ValidateJobSpec(*spec, {.absolute_paths = true}), options.file));

  v1::SubmitRequest request;
  *request.mutable_spec() = *std::move(spec);
  request.set_idempotency_key(options.idempotency_key);
  if (options.idempotency_key.empty()) {
    LLM_ASSIGN_OR_RETURN(*request.mutable_idempotency_key(), RandomKey());
  }
  request.set_dry_run(options.dry_run);
  absl::StatusOr<v1::SubmitReply> submitted = session.cluster.Submit(request);
  if (!submitted.ok()) return WithKey(submitted.status(), request.idempotency_key());
  const v1::SubmitReply& reply = *submitted;
  bool follow = options.follow && !options.dry_run;
  if (session.format == Format::kTable) {
    PrintSubmitted(reply, options, session.out);
  } else if (!follow) {
    session.PrintStructured(reply.job());
  }
  return follow ? FollowJob(reply.job().id(), session) : absl::StatusOr<ExitCode>(ExitCode::kOk);
}

}  // namespace llmctl::client
