#include "client/command/exit_code.h"

#include "absl/strings/str_cat.h"

#include "common/base/check.h"

namespace llmctl::client {

ExitCode ExitCodeOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk: return ExitCode::kOk;
    case absl::StatusCode::kInvalidArgument: return ExitCode::kUsage;
    case absl::StatusCode::kNotFound: return ExitCode::kNotFound;
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded: return ExitCode::kUnreachable;
    case absl::StatusCode::kCancelled: return ExitCode::kJobCancelled;
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kAborted: return ExitCode::kConflict;
    default: return ExitCode::kOther;
  }
}

ExitCode ExitCodeOf(const v1::Job& ended) {
  switch (ended.phase()) {
    case v1::JOB_PHASE_SUCCEEDED: return ExitCode::kOk;
    case v1::JOB_PHASE_CANCELLED: return ExitCode::kJobCancelled;
    case v1::JOB_PHASE_FAILED: return ExitCode::kJobFailed;
    default: CHECK(false) << "job " << ended.id() << " has not ended: phase " << ended.phase();
  }
  return ExitCode::kOther;
}

std::string Explain(const absl::Status& status) {
  absl::string_view advice;
  if (absl::IsUnavailable(status)) {
    advice = "\nIs a coordinator running? `llmctl local up` starts one here; --coordinator names another.";
  } else if (absl::IsDeadlineExceeded(status)) {
    advice = "\nIt did not answer in time. Try again, or give it longer with --timeout.";
  } else if (absl::IsUnimplemented(status)) {
    advice = "\nThe coordinator is older than this llmctl, or what listens there is no coordinator.";
  }
  return absl::StrCat(status.message(), advice);
}

}  // namespace llmctl::client
