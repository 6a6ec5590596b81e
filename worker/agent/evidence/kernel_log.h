// The end of the kernel's log: out-of-memory kills, device errors, hung disks.
#pragma once

#include <string>

namespace llmctl::agent {

// The last messages, oldest first; why there are none, if this process may not read them.
std::string KernelLogTail();

}  // namespace llmctl::agent
