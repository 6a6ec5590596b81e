// What an agent finds out about its host when it starts or dials.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace llmctl::agent {

// Changes with every boot of the kernel.
absl::StatusOr<std::string> ReadBootId();
absl::StatusOr<std::string> ReadHostName();

// "host:port" of --coordinator: itself, or for "@FILE" the content of the file.
absl::StatusOr<std::string> CoordinatorAddress(const std::string& flag);

// The address of this host that the route to the coordinator leaves by: where other ranks reach it. 127.0.0.1
// only if the coordinator is reached over loopback. No packet is sent.
absl::StatusOr<std::string> FabricAddress(absl::string_view coordinator_address);

}  // namespace llmctl::agent
