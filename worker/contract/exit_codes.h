// How a trainer says why it ended. The shim's exit record and the coordinator's classifier read these.
//
// A trainer that dies by a signal has no exit code; one that could still speak sends `fatal` with the same
// class before it exits.
#pragma once

namespace llmctl::contract {

enum ExitCode : int {
  kExitOk = 0,
  // Stopped on request after yielding: its state is in a committed checkpoint.
  kExitYielded = 10,
  // The configuration cannot work (unknown model, missing dataset, no checkpoint fits): retrying is pointless.
  kExitConfig = 64,
  // A failure of the user's own making: assertion, NaN budget spent.
  kExitUser = 65,
  // Host or device memory ran out.
  kExitOutOfMemory = 66,
  // A peer, collective, device or file system failed: worth retrying elsewhere.
  kExitInfrastructure = 67,
  // No way to the coordinator for longer than the orphan timeout.
  kExitOrphaned = 68,
  // A bug of ours: an exception nobody classified.
  kExitInternal = 70,
};

}  // namespace llmctl::contract
