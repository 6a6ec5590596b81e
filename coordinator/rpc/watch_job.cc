#include "coordinator/rpc/watch_job.h"

#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"

#include "common/base/mutex.h"
#include "coordinator/rpc/grpc_status.h"
#include "coordinator/rpc/job_lookup.h"

namespace llmctl::rpc {
namespace {

// What a watch has sent and may send. Shared with the hub's callback, which may come after the call has ended;
// then `reactor` is null.
//
// gRPC takes one write at a time: while one is outstanding, news only sets a flag, and OnWriteDone looks again.
// Several changes may have come by then: record changes are sent one by one, figures only as the newest.
struct WatchState {
  WatchState(runtime::Runtime& runtime_in, JobId job_in) : runtime(runtime_in), job(std::move(job_in)) {}

  // Sends the next thing there is, if any.
  void Advance() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    if (!reactor || writing || finished) return;
    if (ended) return Finish(absl::OkStatus());
    absl::StatusOr<std::optional<runtime::SnapshotHub::Change>> change = runtime.hub().NextChange(job, revision);
    if (!change.ok()) return Finish(change.status());
    std::shared_ptr<const runtime::Snapshot> snapshot = runtime.snapshot();
    const runtime::JobView* view = snapshot->FindJob(job);
    if (change->has_value()) {
      revision = (*change)->revision;
      if (!(*change)->job) return Finish(absl::NotFoundError(absl::StrCat("job ", job.value(), " was deleted")));
      touched = false;
      return Send(ShowJob(runtime, {(*change)->job, (*change)->revision, view ? view->waiting : nullptr}));
    }
    if (touched && view && view->revision <= revision) {
      touched = false;
      Send(ShowJob(runtime, *view));
    }
  }

  void Send(v1::Job what) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    ended = what.phase() == v1::JOB_PHASE_SUCCEEDED || what.phase() == v1::JOB_PHASE_FAILED ||
            what.phase() == v1::JOB_PHASE_CANCELLED;
    message = std::move(what);
    writing = true;
    reactor->StartWrite(&message);
  }

  void Finish(const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    if (std::exchange(finished, true)) return;
    reactor->Finish(ToGrpc(status));
  }

  runtime::Runtime& runtime;
  const JobId job;

  Mutex mutex;
  grpc::ServerWriteReactor<v1::Job>* reactor ABSL_GUARDED_BY(mutex) = nullptr;
  int64_t revision ABSL_GUARDED_BY(mutex) = 0;  // of the last record change that was sent
  bool touched ABSL_GUARDED_BY(mutex) = false;
  bool writing ABSL_GUARDED_BY(mutex) = false;
  bool ended ABSL_GUARDED_BY(mutex) = false;
  bool finished ABSL_GUARDED_BY(mutex) = false;
  v1::Job message ABSL_GUARDED_BY(mutex);
};

class WatchReactor final : public grpc::ServerWriteReactor<v1::Job> {
 public:
  WatchReactor(runtime::Runtime& runtime, const v1::WatchJobRequest& request) {
    std::shared_ptr<const runtime::Snapshot> snapshot = runtime.snapshot();
    absl::StatusOr<runtime::JobView> view = FindJob(*snapshot, request.id());
    if (!view.ok()) {
      Finish(ToGrpc(view.status()));
      return;
    }
    state_ = std::make_shared<WatchState>(runtime, view->job->id);
    subscription_ = runtime.hub().Subscribe(state_->job, [state = state_] {
      MutexLock lock(state->mutex);
      state->touched = true;
      state->Advance();
    });
    MutexLock lock(state_->mutex);
    state_->reactor = this;
    if (request.after_revision() > 0) {
      state_->revision = request.after_revision();
      // Resuming after the end of a job: there is nothing left to wait for.
      if (IsTerminal(view->job->phase) && view->revision <= request.after_revision()) state_->ended = true;
      state_->Advance();
    } else {
      state_->revision = snapshot->revision();
      state_->Send(ShowJob(runtime, *view));
    }
  }

  void OnWriteDone(bool ok) override {
    MutexLock lock(state_->mutex);
    state_->writing = false;
    if (!ok) return state_->Finish(absl::CancelledError("the watcher is gone"));
    state_->Advance();
  }

  void OnCancel() override {
    if (!state_) return;
    MutexLock lock(state_->mutex);
    // A write in flight ends with an error and finishes the call.
    if (!state_->writing) state_->Finish(absl::CancelledError("the watcher is gone"));
  }

  void OnDone() override {
    if (state_) {
      state_->runtime.hub().Unsubscribe(state_->job, subscription_);
      // Held on its own: the lock must not outlive the state.
      std::shared_ptr<WatchState> state = state_;
      MutexLock lock(state->mutex);
      state->reactor = nullptr;
    }
    delete this;
  }

 private:
  std::shared_ptr<WatchState> state_;
  int64_t subscription_ = 0;
};

}  // namespace

grpc::ServerWriteReactor<v1::Job>* WatchJob(runtime::Runtime& runtime, const v1::WatchJobRequest& request) {
  return new WatchReactor(runtime, request);
}

}  // namespace llmctl::rpc
