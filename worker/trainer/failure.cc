#include "worker/trainer/failure.h"

#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"

#include "common/base/check.h"
#include "worker/contract/messages.h"

namespace llmctl::trainer {
namespace {

constexpr char kPayload[] = "llmctl.exit_code";

}  // namespace

absl::Status WithExitCode(absl::Status status, contract::ExitCode code) {
  if (!status.ok()) status.SetPayload(kPayload, absl::Cord(absl::StrCat(static_cast<int>(code))));
  return status;
}

contract::ExitCode ExitCodeOf(const absl::Status& status) {
  CHECK(!status.ok());
  int attached = 0;
  absl::optional<absl::Cord> payload = status.GetPayload(kPayload);
  if (payload.has_value() && absl::SimpleAtoi(std::string(*payload), &attached)) {
    return static_cast<contract::ExitCode>(attached);
  }
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kUnimplemented:
      return contract::kExitConfig;
    case absl::StatusCode::kInternal:
      return contract::kExitInternal;
    default:
      return contract::kExitInfrastructure;
  }
}

void SayFatal(ShimLink& link, const absl::Status& status) {
  link.Send(contract::Fatal{.failure_class = FailureClass(ExitCodeOf(status)),
                            .message = std::string(status.message().substr(0, kMessageBytesMax))});
  link.Flush(absl::Seconds(1));
}

std::string FailureClass(contract::ExitCode code) {
  switch (code) {
    case contract::kExitConfig: return "config";
    case contract::kExitUser: return "user";
    case contract::kExitOutOfMemory: return "oom";
    case contract::kExitInfrastructure: return "infrastructure";
    case contract::kExitOrphaned: return "orphaned";
    case contract::kExitOk:
    case contract::kExitYielded:
    case contract::kExitInternal:
      break;
  }
  return "internal";
}

}  // namespace llmctl::trainer
