#include "simulator/users.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

#include "simulator/shared_disk.h"

namespace llmctl::simulator {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(5);

}  // namespace

Users::Users(Simulation& sim, Coordinator& coordinator, int devices_total)
    : sim_(sim), coordinator_(coordinator), devices_total_(devices_total) {
  coordinator_.set_reply([this](const core::ReplyToUser& reply) { OnReply(reply); });
}

core::JobSubmitted Users::MakeRequest(int index, bool* too_large) {
  core::JobSubmitted request;
  request.name = absl::StrCat("job-", index);
  request.project = "default";
  request.idempotency_key = absl::StrCat("key-", index);
  Workload workload;
  workload.steps = 5 + sim_.Pick(60);
  workload.checkpoint_every = 1 + sim_.Pick(20);
  workload.step_milliseconds = 200 + sim_.Pick(3000);
  request.spec = EncodeWorkload(workload);
  JobRequirements& needs = request.requirements;
  *too_large = sim_.Chance(0.05);
  needs.workers_min = *too_large ? devices_total_ + 1 : 1 + sim_.Pick(devices_total_);
  needs.workers_max = needs.workers_min + sim_.Pick(2);
  needs.global_batch_size = 24;
  needs.priority = 10 * sim_.Pick(10);
  needs.max_restarts = sim_.Pick(3);
  needs.max_attempts_without_progress = 3 + sim_.Pick(20);
  needs.keep_last = 1 + sim_.Pick(3);
  if (sim_.Chance(0.15)) needs.time_limit = absl::Seconds(20 + sim_.Pick(300));
  needs.checkpoint_directory = sim_.Chance(0.05) ? kLocalDirectory : kSharedDirectory;
  needs.dataset = "/data";
  return request;
}

void Users::Begin(int jobs, absl::Duration period) {
  for (int i = 0; i < jobs; ++i) {
    Submission submission;
    submission.request = MakeRequest(i, &submission.too_large);
    submissions_.push_back(std::move(submission));
    sim_.After(sim_.Between(absl::ZeroDuration(), period), [this, i] { Submit(i); });
    if (sim_.Chance(0.2)) {
      sim_.Reached("submitted twice at once");
      sim_.After(sim_.Between(absl::ZeroDuration(), period), [this, i] { Submit(i); });
    }
    for (int n = sim_.Pick(3); n > 0; --n) {
      sim_.After(sim_.Between(absl::ZeroDuration(), period), [this, i] { Meddle(i); });
    }
  }
}

void Users::Submit(int index) {
  if (!submissions_[index].job.empty()) return;
  core::JobSubmitted request = submissions_[index].request;
  request.request = next_request_++;
  submits_[request.request] = index;
  coordinator_.Request(request);
  sim_.After(kPatience, [this, index] {
    if (submissions_[index].job.empty()) {
      sim_.Reached("submission repeated with its key");
      Submit(index);
    }
  });
}

void Users::Meddle(int index) {
  Submission& submission = submissions_[index];
  if (calm_ || submission.job.empty() || submission.deleted) return;
  core::RequestId request = next_request_++;
  int what = sim_.Pick(10);
  if (what < 3) {
    sim_.Reached("cancel");
    cancels_[request] = index;
    coordinator_.Request(core::JobCancelled{request, submission.job, "changed my mind"});
  } else if (what < 7) {
    sim_.Reached("suspend");
    coordinator_.Request(core::JobSuspended{request, submission.job});
    sim_.After(sim_.Between(absl::ZeroDuration(), absl::Minutes(3)), [this, index] {
      if (submissions_[index].deleted || sim_.Chance(0.2)) return;
      sim_.Reached("resume");
      coordinator_.Request(core::JobResumed{next_request_++, submissions_[index].job});
    });
  } else {
    sim_.Reached("delete");
    deletes_[request] = index;
    coordinator_.Request(core::JobDeleted{request, submission.job});
  }
}

void Users::Calm() { calm_ = true; }

void Users::OnReply(const core::ReplyToUser& reply) {
  if (auto found = submits_.find(reply.request); found != submits_.end()) {
    Submission& submission = submissions_[found->second];
    submits_.erase(found);
    if (submission.deleted) return;
    if (!reply.status.ok()) {
      sim_.Violation(absl::StrCat("submission refused: ", reply.status.message()));
    } else if (!submission.job.empty() && submission.job != reply.job) {
      sim_.Violation(absl::StrCat(submission.request.idempotency_key, " was accepted as ", submission.job.value(),
                                  " and again as ", reply.job.value()));
    }
    submission.job = reply.job;
  } else if (auto cancel = cancels_.find(reply.request); cancel != cancels_.end()) {
    if (reply.status.ok()) submissions_[cancel->second].cancelled = true;
  } else if (auto deleted = deletes_.find(reply.request); deleted != deletes_.end()) {
    if (reply.status.ok()) submissions_[deleted->second].deleted = true;
    if (!reply.status.ok()) sim_.Reached("delete refused");
  }
}

std::string Users::BrokenPromise() const {
  std::map<std::string, JobId> keys;
  for (const auto& [id, job] : coordinator_.store().jobs()) {
    if (!job.idempotency_key.empty() && !keys.emplace(job.idempotency_key, id).second) {
      return absl::StrCat(job.idempotency_key, " has two jobs");
    }
  }
  for (const Submission& submission : submissions_) {
    if (submission.job.empty() || submission.deleted) continue;
    auto job = coordinator_.store().jobs().find(submission.job);
    if (job == coordinator_.store().jobs().end()) {
      // A delete whose answer was lost is not a broken promise.
      bool asked = std::any_of(deletes_.begin(), deletes_.end(), [&](const auto& entry) {
        return &submissions_[entry.second] == &submission;
      });
      if (!asked) return absl::StrCat("accepted job ", submission.job.value(), " is lost");
      continue;
    }
    if (submission.cancelled && !job->second.cancel_requested) {
      return absl::StrCat("the cancel of ", submission.job.value(), " was forgotten");
    }
  }
  return "";
}

bool Users::Waiting() const {
  return std::any_of(submissions_.begin(), submissions_.end(), [](const Submission& s) { return s.job.empty(); });
}

bool Users::IsTooLarge(const JobId& job) const {
  return std::any_of(submissions_.begin(), submissions_.end(),
                     [&](const Submission& s) { return s.job == job && s.too_large; });
}

}  // namespace llmctl::simulator
