// How an error becomes an exit code of worker/contract/exit_codes.h.
//
// Most follow from the status code: what the configuration names but is not there or does not fit is a
// configuration error, a peer or file system that fails, or has no room, is the infrastructure's. Where the same code
// can mean either, the place that knows attaches the exit code to the status: so for memory, as ResourceExhausted is a
// full disk's too.
#pragma once

#include <cstddef>
#include <string>

#include "absl/status/status.h"

#include "worker/contract/exit_codes.h"
#include "worker/contract/messages.h"
#include "worker/trainer/shim_link.h"

namespace llmctl::trainer {

absl::Status WithExitCode(absl::Status status, contract::ExitCode code);

// The attached code, or the one that fits. `status` is an error.
contract::ExitCode ExitCodeOf(const absl::Status& status);

// Room for the rest of a line, and for what JSON makes of strange bytes.
inline constexpr size_t kMessageBytesMax = contract::kLineBytesMax / 8;

// Last words: the error goes to the shim, and is there when this returns. Said before the peers can see that this rank
// ends, so that their failures are not taken for the cause of it.
void SayFatal(ShimLink& link, const absl::Status& status);

// The class of a contract::Fatal message: "config", "user", ...
std::string FailureClass(contract::ExitCode code);

}  // namespace llmctl::trainer
