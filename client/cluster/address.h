// Where the coordinator is.
//
// In this order: --coordinator, the environment's LLMCTL_COORDINATOR, the file that `llmctl local up` leaves in
// .llmctl of the current folder, 127.0.0.1:7600. "@FILE" names a file that holds HOST:PORT; it is read anew at
// each dial, for a coordinator that was restarted may have another port.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace llmctl::client {

struct CoordinatorAddress {
  std::string value;   // HOST:PORT or @FILE
  std::string origin;  // for messages: "--coordinator", "the default", ...

  // HOST:PORT. Unavailable when the file is not there (the coordinator has not started), InvalidArgument when
  // there is no host and port in it.
  absl::StatusOr<std::string> Resolve() const;
};

// `flag` is what --coordinator said, `environment` what LLMCTL_COORDINATOR says; empty where unset. Looks into the
// current folder.
CoordinatorAddress FindCoordinator(const std::string& flag, const std::string& environment);

}  // namespace llmctl::client
