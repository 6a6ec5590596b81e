// Taking a job out of play without its own handlers: they are what crashed.
//
// Called on a state that has just been loaded, before its first event; the caller persists the job. Hosts that still
// have processes of the job are told to stop them when they say hello, for its gang is live no more; its counters stay,
// so no generation is used twice.
#pragma once

#include <string>

#include "common/base/instant.h"
#include "coordinator/model/job.h"

namespace llmctl::core {

// Suspended, so that a user may let it go on once the cause is mended (resume), or cancel it. A job whose end was
// decided already ends. `why` for people. Returns the event to be appended to its history. Not for terminal jobs.
JobEventRecord HoldJob(Job& job, const std::string& why, Instant now);

// The last resort, for a job that crashes the coordinator even so: a stand-in takes its place (model/stand_in.h).
// Returns the event to be appended to its history.
JobEventRecord BuryJob(Job& job, const std::string& why, Instant now);

}  // namespace llmctl::core
