// ShimLink: the trainer's end of the line to its shim.
//
// A training step must never wait for an observer. So sending only queues: one thread writes the queue to the
// socket, another reads it. Progress that nobody has taken is worth less than newer progress: at most
// kProgressQueued of it is kept, the oldest goes first. Everything else is never dropped.
//
// The link ends when the shim closes it, or when a line breaks the contract; it is never opened again. All methods
// may be called from any thread.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

#include "common/base/ids.h"
#include "common/base/mutex.h"
#include "worker/contract/messages.h"

namespace llmctl::trainer {

class ShimLink {
 public:
  static constexpr int kProgressQueued = 64;

  // Takes over `fd` and says hello.
  explicit ShimLink(int fd);
  // Sends what is queued, for at most a second.
  ~ShimLink();
  ShimLink(const ShimLink&) = delete;
  ShimLink& operator=(const ShimLink&) = delete;

  void Send(contract::Message message);
  // False if not everything was on its way after `timeout`.
  bool Flush(absl::Duration timeout);

  // A store request and its answer. Unavailable: the link ended, or CancelCalls. DeadlineExceeded.
  absl::StatusOr<contract::StoreReply> Call(contract::StoreRequest request, absl::Duration timeout);
  // Ends every waiting and later Call.
  void CancelCalls(absl::string_view reason);

  // What has come since the last call, but for hello and answers to Call.
  std::vector<contract::Message> Take();
  // Waits until Take() has something or the link has ended. False after `timeout`.
  bool Wait(absl::Duration timeout);

  bool ended() const;
  std::string end_reason() const;

  // While it lives, `handler` is called from the reading thread when something came that cannot wait for the next step:
  // Stop, an Assignment to a later generation, or the end of the link. Called at once if that has happened already;
  // calls no method of this class. Waiting and later Calls fail by themselves then.
  class UrgentHandler {
   public:
    UrgentHandler(ShimLink& link, std::function<void()> handler) : link_(link) { link_.OnUrgent(std::move(handler)); }
    ~UrgentHandler() { link_.OnUrgent(nullptr); }
    UrgentHandler(const UrgentHandler&) = delete;
    UrgentHandler& operator=(const UrgentHandler&) = delete;

   private:
    ShimLink& link_;
  };

 private:
  void OnUrgent(std::function<void()> handler);
  void ReadLines();
  // False: the link is to end.
  bool HandleLine(absl::string_view line, bool first);
  void Deliver(contract::Message message);
  void RaiseUrgent();
  void End(absl::string_view reason);
  void WriteLines();
  void DropOldProgress() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const int fd_;

  mutable Mutex mutex_;
  CondVar changed_;  // any of the fields below
  std::deque<contract::Message> outbox_ ABSL_GUARDED_BY(mutex_);
  int progress_queued_ ABSL_GUARDED_BY(mutex_) = 0;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;  // a line has left the outbox but not yet this process
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<contract::Message> inbox_ ABSL_GUARDED_BY(mutex_);
  GenerationId assigned_ ABSL_GUARDED_BY(mutex_);
  std::map<int64_t, contract::StoreReply> replies_ ABSL_GUARDED_BY(mutex_);  // by request
  std::map<int64_t, bool> waiting_ ABSL_GUARDED_BY(mutex_);                  // requests whose answer is wanted
  int64_t last_request_ ABSL_GUARDED_BY(mutex_) = 0;
  std::string cancelled_ ABSL_GUARDED_BY(mutex_);  // reason; empty: not
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  std::string end_reason_ ABSL_GUARDED_BY(mutex_);
  bool urgent_ ABSL_GUARDED_BY(mutex_) = false;
  std::function<void()> urgent_handler_ ABSL_GUARDED_BY(mutex_);

  std::thread reader_;
  std::thread writer_;
};

}  // namespace llmctl::trainer
