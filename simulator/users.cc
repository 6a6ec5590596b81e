#include "simulator/users.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

#include "simulator/shared_disk.h"

namespace llmctl::simulator {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(5);
constexpr absl::Duration kOvertaking = absl::Milliseconds(20);
// Gangs beyond it take longer to simulate and show nothing new.
constexpr int kWorkersMost = 5;

}  // namespace

const std::vector<Users::Deed>& Users::Deeds() {
  static const std::vector<Deed> deeds = {&Users::SubmitJob, &Users::Cancel, &Users::Suspend,
                                          &Users::Delete,    &Users::Cordon, &Users::Drain};
  return deeds;
}

core::JobSubmitted Users::MakeRequest(Dice& dice, int index, bool* too_large) const {
  core::JobSubmitted request;
  request.name = absl::StrCat("job-", index);
  request.project = "default";
  request.idempotency_key = absl::StrCat("key-", index);
  Workload workload;
  workload.steps = 5 + dice.Pick(40);
  workload.checkpoint_every = 1 + dice.Pick(15);
  workload.step_milliseconds = 200 + dice.Pick(1800);
  request.spec = EncodeWorkload(workload);
  JobRequirements& needs = request.requirements;
  *too_large = dice.Happens(0.05);
  needs.workers_min = *too_large ? surroundings_.devices_total + 1
                                 : 1 + dice.Pick(std::min(surroundings_.devices_total, kWorkersMost));
  needs.workers_max = needs.workers_min + dice.Pick(2);
  needs.global_batch_size = 24;
  needs.priority = 10 * dice.Pick(10);
  needs.max_restarts = dice.Pick(3);
  needs.max_attempts_without_progress = 3 + dice.Pick(20);
  needs.keep_last = 1 + dice.Pick(3);
  if (dice.Happens(0.15)) needs.time_limit = absl::Seconds(10 + dice.Pick(120));
  needs.checkpoint_directory = dice.Happens(0.03) ? kLocalDirectory : kSharedDirectory;
  needs.dataset = "/data";
  return request;
}

void Users::SubmitJob(Dice& dice, const Occasion&) {
  int index = submitted();
  Submission submission;
  submission.request = MakeRequest(dice, index, &submission.too_large);
  submissions_.push_back(std::move(submission));
  sim_.Reached(Probe::kSubmit);
  Submit(index);
  if (dice.Happens(0.3)) {
    sim_.Reached(Probe::kSubmitTwice);
    sim_.After(dice.Between(absl::ZeroDuration(), absl::Seconds(3)), [this, index] { Submit(index); });
  }
}

void Users::Submit(int index) {
  if (!submissions_[index].job.empty()) return;
  core::JobSubmitted request = submissions_[index].request;
  request.request = next_request_++;
  submits_[request.request] = index;
  surroundings_.ask(request);
  sim_.After(kPatience, [this, index] {
    if (submissions_[index].job.empty()) {
      sim_.Reached(Probe::kSubmitRepeated);
      Submit(index);
    }
  });
}

int Users::Choose(Dice& dice, const Occasion& occasion) const {
  std::vector<int> there;
  for (int i = 0; i < submitted(); ++i) {
    if (submissions_[i].job.empty() || submissions_[i].deleted) continue;
    if (submissions_[i].job == occasion.job) return i;
    there.push_back(i);
  }
  return there.empty() ? -1 : there[dice.Pick(static_cast<int>(there.size()))];
}

void Users::Cancel(Dice& dice, const Occasion& occasion) {
  int index = Choose(dice, occasion);
  if (index < 0) return;
  sim_.Reached(Probe::kCancel);
  core::RequestId request = next_request_++;
  cancels_[request] = index;
  surroundings_.ask(core::JobCancelled{request, submissions_[index].job, "changed my mind"});
}

void Users::Suspend(Dice& dice, const Occasion& occasion) {
  int index = Choose(dice, occasion);
  if (index < 0) return;
  sim_.Reached(Probe::kSuspend);
  surroundings_.ask(core::JobSuspended{next_request_++, submissions_[index].job});
  if (dice.Happens(0.2)) return;
  sim_.After(dice.Between(absl::ZeroDuration(), absl::Minutes(1)), [this, index] {
    if (submissions_[index].deleted || calm_) return;
    sim_.Reached(Probe::kResume);
    surroundings_.ask(core::JobResumed{next_request_++, submissions_[index].job});
  });
}

void Users::Delete(Dice& dice, const Occasion& occasion) {
  int index = Choose(dice, occasion);
  if (index < 0) return;
  sim_.Reached(Probe::kDelete);
  core::RequestId request = next_request_++;
  deletes_[request] = index;
  submissions_[index].delete_asked = true;
  surroundings_.ask(core::JobDeleted{request, submissions_[index].job});
}

const NodeId& Users::ChooseNode(Dice& dice, const Occasion& occasion) const {
  const std::vector<NodeId>& nodes = surroundings_.nodes;
  int chosen = dice.Pick(static_cast<int>(nodes.size()));
  auto here = std::find(nodes.begin(), nodes.end(), occasion.node);
  return here == nodes.end() ? nodes[chosen] : *here;
}

void Users::Cordon(Dice& dice, const Occasion& occasion) {
  const NodeId& node = ChooseNode(dice, occasion);
  sim_.Reached(Probe::kCordon);
  surroundings_.ask(core::NodeCordoned{Close(node), node, "a look at it"});
  OpenLater(dice, node);
}

void Users::Drain(Dice& dice, const Occasion& occasion) {
  const NodeId& node = ChooseNode(dice, occasion);
  sim_.Reached(Probe::kDrain);
  absl::Duration deadline = dice.Between(absl::Seconds(1), absl::Minutes(1));
  surroundings_.ask(core::NodeDrainStarted{Close(node), node, "maintenance", deadline});
  OpenLater(dice, node);
}

core::RequestId Users::Close(const NodeId& node) {
  core::RequestId request = next_request_++;
  closed_[node] = {request, sim_.now()};
  return request;
}

void Users::OpenLater(Dice& dice, const NodeId& node) {
  if (dice.Happens(0.2)) return;
  sim_.After(dice.Between(absl::ZeroDuration(), absl::Seconds(40)), [this, node] {
    if (!calm_) Open(node);
  });
}

void Users::Open(const NodeId& node) {
  auto closed = closed_.find(node);
  if (closed == closed_.end()) return;
  // Requests overtake each other: it must not arrive before what it is to undo.
  if (sim_.now() - closed->second.time < kOvertaking) {
    sim_.After(kOvertaking, [this, node] { Open(node); });
    return;
  }
  sim_.Reached(Probe::kUncordon);
  core::RequestId request = next_request_++;
  opens_[request] = {node, closed->second.request};
  surroundings_.ask(core::NodeUncordoned{request, node});
  sim_.After(kPatience, [this, node] { Open(node); });
}

void Users::Calm() {
  calm_ = true;
  // Those too that were found unfit: an operator takes the place of a burn-in.
  for (const NodeId& node : surroundings_.nodes) {
    closed_.try_emplace(node);
    Open(node);
  }
}

void Users::OnReply(const core::ReplyToUser& reply) {
  if (auto found = submits_.find(reply.request); found != submits_.end()) {
    Submission& submission = submissions_[found->second];
    submits_.erase(found);
    if (submission.deleted) return;
    if (!reply.status.ok()) {
      sim_.Violation(absl::StrCat("submission refused: ", reply.status.message()));
    } else if (!submission.job.empty() && submission.job != reply.job && !submission.delete_asked) {
      sim_.Violation(absl::StrCat(submission.request.idempotency_key, " was accepted as ", submission.job.value(),
                                  " and again as ", reply.job.value()));
    }
    submission.job = reply.job;
  } else if (auto cancel = cancels_.find(reply.request); cancel != cancels_.end()) {
    if (reply.status.ok()) submissions_[cancel->second].cancelled = true;
  } else if (auto deleted = deletes_.find(reply.request); deleted != deletes_.end()) {
    if (reply.status.ok()) submissions_[deleted->second].deleted = true;
    if (!reply.status.ok()) sim_.Reached(Probe::kDeleteRefused);
  } else if (auto opened = opens_.find(reply.request); opened != opens_.end()) {
    // A host that the coordinator does not know was never closed.
    auto closed = closed_.find(opened->second.node);
    if (closed != closed_.end() && closed->second.request == opened->second.closed_by) closed_.erase(closed);
    opens_.erase(opened);
  }
}

std::string Users::BrokenPromise(const RecordStore& store, const Submission& submission) const {
  if (submission.deleted) return "";
  const Job* job = store.Find(submission.job);
  if (job == nullptr) {
    // A delete whose answer was lost is not a broken promise.
    return submission.delete_asked ? "" : absl::StrCat("accepted job ", submission.job.value(), " is lost");
  }
  if (submission.cancelled && !job->cancel_requested) {
    return absl::StrCat("the cancel of ", submission.job.value(), " was forgotten");
  }
  return "";
}

std::string Users::BrokenPromise(const RecordStore& store, const std::set<JobId>& changed) const {
  for (const JobId& id : changed) {
    const Job* job = store.Find(id);
    if (job == nullptr || job->idempotency_key.empty()) continue;
    for (const auto& [other, another] : store.jobs()) {
      if (other != id && another->idempotency_key == job->idempotency_key) {
        return absl::StrCat(job->idempotency_key, " has two jobs");
      }
    }
  }
  for (const Submission& submission : submissions_) {
    if (submission.job.empty()) continue;
    std::string broken = BrokenPromise(store, submission);
    if (!broken.empty()) return broken;
  }
  return "";
}

bool Users::Waiting() const {
  if (!closed_.empty()) return true;
  return std::any_of(submissions_.begin(), submissions_.end(), [](const Submission& s) { return s.job.empty(); });
}

bool Users::IsTooLarge(const JobId& job) const {
  return std::any_of(submissions_.begin(), submissions_.end(),
                     [&](const Submission& s) { return s.job == job && s.too_large; });
}

}  // namespace llmctl::simulator
