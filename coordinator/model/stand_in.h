// What takes the place of a record that cannot be worked with: it cannot be read, or crashes whoever tries. The record
// itself is kept apart (store::DamagedRecord).
//
// A stand-in keeps what others refer to and does as little as it can: a job that has not ended is suspended and cannot
// be resumed, a node takes no ranks, as it may have been closed.
#pragma once

#include <string>

#include "absl/time/time.h"

#include "coordinator/model/job.h"
#include "coordinator/model/node.h"

namespace llmctl {

// `job` says what it is and what it has been told to users: its identity, how it ended if it has, its history's length.
// `now` is the time of an end that is not known.
Job StandInFor(const Job& job, const std::string& why, absl::Time now);

// `node` says which agent was the newest, if that is known.
Node StandInFor(const Node& node, const std::string& why);

}  // namespace llmctl
