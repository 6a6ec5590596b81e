#include "coordinator/model/job.h"

namespace llmctl {

bool IsTerminal(JobPhase phase) {
  return phase == JobPhase::kSucceeded || phase == JobPhase::kFailed || phase == JobPhase::kCancelled;
}

bool HasLiveGang(JobPhase phase) {
  return phase == JobPhase::kStarting || phase == JobPhase::kRunning || phase == JobPhase::kStopping;
}

bool WorldSizeAllowed(const JobRequirements& requirements, int world_size) {
  if (requirements.data_parallel != 0 && requirements.data_parallel != world_size) return false;
  return world_size >= 1 && world_size <= requirements.global_batch_size;
}

const char* JobPhaseName(JobPhase phase) {
  switch (phase) {
    case JobPhase::kQueued: return "queued";
    case JobPhase::kStarting: return "starting";
    case JobPhase::kRunning: return "running";
    case JobPhase::kStopping: return "stopping";
    case JobPhase::kBackoff: return "backoff";
    case JobPhase::kSuspended: return "suspended";
    case JobPhase::kSucceeded: return "succeeded";
    case JobPhase::kFailed: return "failed";
    case JobPhase::kCancelled: return "cancelled";
  }
  return "?";
}

const char* RankPhaseName(RankPhase phase) {
  switch (phase) {
    case RankPhase::kAssigned: return "assigned";
    case RankPhase::kStarting: return "starting";
    case RankPhase::kRunning: return "running";
    case RankPhase::kExited: return "exited";
  }
  return "?";
}

}  // namespace llmctl
