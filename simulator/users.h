// People: they submit, lose patience and submit again, cancel, suspend, resume and delete, at random moments.
//
// What they were promised is remembered and held against the store: an accepted job is never lost or doubled, a
// cancel that was answered wins.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "simulator/coordinator.h"
#include "simulator/simulation.h"

namespace llmctl::simulator {

class Users {
 public:
  Users(Simulation& sim, Coordinator& coordinator, int devices_total);
  Users(const Users&) = delete;
  Users& operator=(const Users&) = delete;

  // Makes the requests of a run, spread over `period`.
  void Begin(int jobs, absl::Duration period);
  // No more surprises; what is suspended by then is resumed, but for some that stay.
  void Calm();

  // Promises that the store does not keep; empty when all is well.
  std::string BrokenPromise() const;
  // Not yet accepted submissions.
  bool Waiting() const;
  // Jobs that were asked for more than the cluster has.
  bool IsTooLarge(const JobId& job) const;

 private:
  struct Submission {
    core::JobSubmitted request;
    JobId job;  // once answered
    bool too_large = false;
    bool deleted = false;
    bool cancelled = false;  // answered
  };

  void Submit(int index);
  void Meddle(int index);
  void OnReply(const core::ReplyToUser& reply);
  core::JobSubmitted MakeRequest(int index, bool* too_large);

  Simulation& sim_;
  Coordinator& coordinator_;
  const int devices_total_;
  std::vector<Submission> submissions_;
  int64_t next_request_ = 1;
  std::map<int64_t, int> submits_;  // outstanding, by request
  std::map<int64_t, int> cancels_;
  std::map<int64_t, int> deletes_;
  bool calm_ = false;
};

}  // namespace llmctl::simulator
