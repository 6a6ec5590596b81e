// Do the hosts of a gang see the same files? The first writes a nonce into the checkpoint directory, the others
// read it back; all report the digest of the dataset's manifest.
//
// May block as long as the file system does: run it off the main thread. Stateless, thread-safe.
#pragma once

#include <string>

#include "worker/agent/core/event.h"
#include "worker/agent/host/allowed_roots.h"

namespace llmctl::agent {

ProbeResult ProbeFiles(const ProbeOrdered& probe, const AllowedRoots& roots);

// Fine if it is gone already.
void RemoveProbeFile(const std::string& checkpoint_directory, const std::string& nonce);

}  // namespace llmctl::agent
