// The commit of a checkpoint: a compare-and-set of the job's pointer.
//
// An offer is accepted from the newest generation only, and only if (step, generation) is beyond what is committed, so
// what is durable moves forward and a fenced writer changes nothing. A repeated offer (the answer was lost) is
// answered like the first time.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "coordinator/core/gang.h"
#include "coordinator/core/handlers.h"

namespace llmctl::core {
namespace {

bool IsCommitted(const Job& job, const CheckpointRecord& offer) {
  return std::any_of(job.checkpoints.begin(), job.checkpoints.end(), [&](const CheckpointRecord& known) {
    return known.step == offer.step && known.generation == offer.generation &&
           known.manifest_digest == offer.manifest_digest;
  });
}

// Why the offer is refused; empty if it is not.
std::string RefusalReason(const Job& job, const GenerationId& generation, const CheckpointRecord& offer) {
  if (generation.generation != job.last_generation || generation.attempt != job.last_attempt) {
    return absl::StrCat("generation ", generation.generation, " of job ", job.id.value(),
                        " is over; the newest is ", job.last_generation);
  }
  if (IsTerminal(job.phase)) return absl::StrCat("job ", job.id.value(), " has already ", JobPhaseName(job.phase));
  if (job.checkpoints.empty()) return "";
  const CheckpointRecord& last = job.checkpoints.back();
  if (std::pair(offer.step, generation.generation) <= std::pair(last.step, last.generation)) {
    return absl::StrCat("step ", offer.step, " is not after the committed step ", last.step);
  }
  if (offer.next_sample < last.next_sample) {
    return absl::StrCat("the samples do not continue: the checkpoint of step ", offer.step, " goes on with sample ",
                        offer.next_sample, ", the committed one of step ", last.step, " with ", last.next_sample);
  }
  return "";
}

// Drops the records beyond keep_last and returns the paths that nothing refers to any more.
std::vector<std::string> TrimCheckpoints(Job& job) {
  std::vector<std::string> removable;
  size_t keep = std::max(1, job.requirements.keep_last);
  while (job.checkpoints.size() > keep) {
    removable.push_back(job.checkpoints.front().path);
    job.checkpoints.erase(job.checkpoints.begin());
  }
  return removable;
}

}  // namespace

void OnCheckpointOffered(Turn& turn, const CheckpointOffered& event) {
  AnswerCheckpoint answer;
  answer.node = event.node;
  answer.generation = event.generation;
  answer.request_id = event.request_id;
  auto found = turn.state.jobs.find(event.generation.job);
  if (found == turn.state.jobs.end()) {
    answer.error = absl::StrCat("there is no job ", event.generation.job.value());
    turn.SendToHost(event.node, std::move(answer));
    return;
  }
  Job& job = found->second;
  CheckpointRecord offer = event.checkpoint;
  offer.attempt = event.generation.attempt;
  offer.generation = event.generation.generation;
  if (IsCommitted(job, offer)) {
    answer.committed = true;
  } else if (std::string reason = RefusalReason(job, event.generation, offer); !reason.empty()) {
    answer.error = std::move(reason);
  } else {
    offer.commit_time = turn.now.wall;
    job.checkpoints.push_back(std::move(offer));
    job.infrastructure_failures = 0;
    job.avoided_nodes.clear();
    job.accused_nodes.clear();
    answer.committed = true;
    answer.removable_paths = TrimCheckpoints(job);
    AccountRunTime(turn, job);
    turn.Log(job, "checkpoint", absl::StrCat("The checkpoint of step ", job.checkpoints.back().step, " is committed."));
  }
  turn.SendToHost(event.node, std::move(answer));
}

}  // namespace llmctl::core
