// How an error becomes an exit code of worker/contract/exit_codes.h.
//
// Most follow from the status code: what the configuration names but is not there or does not fit is a
// configuration error, a peer or file system that fails is the infrastructure's. Where the same code can mean either,
// the place that knows attaches the exit code to the status.
#pragma once

#include <string>

#include "absl/status/status.h"

#include "worker/contract/exit_codes.h"

namespace llmctl::trainer {

absl::Status WithExitCode(absl::Status status, contract::ExitCode code);

// The attached code, or the one that fits. `status` is an error.
contract::ExitCode ExitCodeOf(const absl::Status& status);

// The class of a contract::Fatal message: "config", "user", ...
std::string FailureClass(contract::ExitCode code);

}  // namespace llmctl::trainer
