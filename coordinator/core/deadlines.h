// How long the core waits for hosts, and how failures are spaced. All are durations from the moment the wait
// begins; none is persisted.
#pragma once

#include "absl/time/time.h"

namespace llmctl::core {

// A host answers a probe within milliseconds; a dead network file system answers after its own time-outs.
inline constexpr absl::Duration kProbeDeadline = absl::Seconds(30);
// How often a host may miss what another has written before the directory counts as not shared: network file systems
// remember for a while that a file was not there. Each round has a file of its own and takes milliseconds.
inline constexpr int kProbeRounds = 3;
// From the start of the processes until all ranks are ready: loading the libraries and the checkpoint.
inline constexpr absl::Duration kStartDeadline = absl::Seconds(120);

// A stop on request leaves a trainer the time to finish what it writes.
inline constexpr absl::Duration kStopGrace = absl::Seconds(10);
// After a failure the surviving ranks end by themselves within milliseconds, when the sockets of the failed one close;
// whoever does not notice has nothing to save, as its last words are on their way before its peers can fail.
inline constexpr absl::Duration kFailureGrace = absl::Milliseconds(250);
// A last checkpoint of a large model to a slow disk.
inline constexpr absl::Duration kYieldGrace = absl::Minutes(5);
// Beyond the grace: kill, confirm, report.
inline constexpr absl::Duration kStopSlack = absl::Seconds(5);
// A host that holds on to a gang for longer (a process in uninterruptible sleep) keeps its devices, but the job
// goes on without it: the generation fences what is left.
inline constexpr absl::Duration kStopGiveUp = absl::Seconds(30);

// Back-off between infrastructure failures without progress.
inline constexpr absl::Duration kBackoffFirst = absl::Seconds(1);
inline constexpr absl::Duration kBackoffMax = absl::Seconds(60);

}  // namespace llmctl::core
