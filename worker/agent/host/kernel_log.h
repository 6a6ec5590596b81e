// What the kernel said about a process that has just ended: that memory ran out and it was chosen, that a GPU reported
// an error (Xid), that a disk or a memory bank is failing. The difference between "killed by signal 9" and a cause.
#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace llmctl::agent {

// Lines of /dev/kmsg of the last minutes that are about process `pid` or about hardware, at most 8 KiB; empty where
// this process may not read it. Costs well under a millisecond per MiB of log.
std::string KernelLinesAbout(int64_t pid);

// The same, of these records (each as one read of /dev/kmsg gives it), at a time since boot.
std::string SelectKernelLines(absl::string_view records, int64_t pid, absl::Duration now);

// The last messages of all, oldest first, one a line with its time since boot; why there are none, if this process may
// not read them.
std::string KernelLogTail();

// The same, of these records.
std::string LastKernelLines(absl::string_view records);

}  // namespace llmctl::agent
