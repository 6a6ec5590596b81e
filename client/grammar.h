// The command line of llmctl: every verb, flag, help text and example, in one place.
#pragma once

#include <string>

namespace llmctl::client {

// Parses, runs the verb, explains what went wrong; the exit code. `environment_address` is what
// LLMCTL_COORDINATOR says.
int RunCommandLine(int argc, char** argv, const std::string& environment_address);

}  // namespace llmctl::client
