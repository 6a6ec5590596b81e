// People: they submit, lose patience and submit again, cancel, suspend, resume and delete, close hosts and empty them,
// now and then at the worst moment.
//
// What they were promised is remembered and held against the store: an accepted job is never lost or doubled, a
// cancel that was answered wins.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "simulator/coordinator.h"
#include "simulator/occasion.h"
#include "simulator/simulation.h"

namespace llmctl::simulator {

class Users {
 public:
  using Deed = void (Users::*)(Dice&, const Occasion&);

  struct Surroundings {
    // Gives the request to a coordinator, if one answers.
    std::function<void(core::Event)> ask;
    std::vector<NodeId> nodes;
    int devices_total = 0;
  };
  Users(Simulation& sim, Surroundings surroundings) : sim_(sim), surroundings_(std::move(surroundings)) {}
  Users(const Users&) = delete;
  Users& operator=(const Users&) = delete;

  void SubmitJob(Dice& dice, const Occasion& occasion);
  // A job that nothing befalls.
  void SubmitInPeace() { SubmitJob(sim_.dice(), {}); }
  // Whatever people do to jobs that there are.
  static const std::vector<Deed>& Deeds();

  void OnReply(const core::ReplyToUser& reply);
  // No more surprises; all hosts are opened.
  void Calm();

  // A promise that the records of these jobs do not keep; empty when all is well.
  std::string BrokenPromise(const RecordStore& store, const std::set<JobId>& changed) const;
  // Not yet accepted submissions, or hosts that are still to be opened.
  bool Waiting() const;
  // Jobs that were asked for more than the cluster has.
  bool IsTooLarge(const JobId& job) const;
  int submitted() const { return static_cast<int>(submissions_.size()); }

 private:
  struct Submission {
    core::JobSubmitted request;
    JobId job;  // once answered
    bool too_large = false;
    bool delete_asked = false;
    bool deleted = false;
    bool cancelled = false;  // answered
  };

  void Cancel(Dice& dice, const Occasion& occasion);
  void Suspend(Dice& dice, const Occasion& occasion);
  void Delete(Dice& dice, const Occasion& occasion);
  void Cordon(Dice& dice, const Occasion& occasion);
  void Drain(Dice& dice, const Occasion& occasion);

  void Submit(int index);
  const NodeId& ChooseNode(Dice& dice, const Occasion& occasion) const;
  core::RequestId Close(const NodeId& node);
  void OpenLater(Dice& dice, const NodeId& node);
  // Asks until it is done.
  void Open(const NodeId& node);
  // The job of the occasion, or any; -1 if there is none.
  int Choose(Dice& dice, const Occasion& occasion) const;
  core::JobSubmitted MakeRequest(Dice& dice, int index, bool* too_large) const;
  std::string BrokenPromise(const RecordStore& store, const Submission& submission) const;

  Simulation& sim_;
  const Surroundings surroundings_;
  std::vector<Submission> submissions_;
  int64_t next_request_ = 1;
  std::map<int64_t, int> submits_;  // outstanding, by request
  std::map<int64_t, int> cancels_;
  std::map<int64_t, int> deletes_;
  // What opens a host again undoes what had closed it by then; the answer may come after somebody has closed it anew.
  struct Opening {
    NodeId node;
    core::RequestId closed_by = 0;
  };
  std::map<int64_t, Opening> opens_;
  struct Closing {
    core::RequestId request = 0;  // the newest that did
    absl::Duration time;
  };
  std::map<NodeId, Closing> closed_;
  bool calm_ = false;
};

}  // namespace llmctl::simulator
