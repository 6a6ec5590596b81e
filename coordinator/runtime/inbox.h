// Inbox: everything that reaches the core's thread.
//
// Items are sorted by what a delay would cost: renewals first (a late one looks like a dead host), then facts
// from hosts (and among them, in order, who waits until they are durable), plans, and users' requests. Each Wait()
// takes a bounded number of each, so a flood of one kind delays the others by one round only. The users' part is
// bounded: beyond it requests are refused, not queued.
//
// Thread-safe: any thread posts, the core's thread waits.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"

#include "common/base/ids.h"
#include "common/base/mutex.h"
#include "coordinator/core/event.h"

namespace llmctl::runtime {

enum class Priority { kHost, kPlan, kUser };

// To be called when all facts of hosts that were posted before it are durable.
struct Acknowledgement {
  int64_t link = 0;
  std::function<void()> give;
};

// An operator gives a quarantined entity another chance: its crashes are to be forgotten.
struct Pardon {
  std::string entity;
  core::RequestId request = 0;  // answered when that is durable
};

class Inbox {
 public:
  using Item = std::variant<core::Event, Acknowledgement, Pardon>;
  struct Renewal {
    NodeId node;
    int64_t incarnation = 0;
  };
  struct Items {
    std::vector<Renewal> renewals;
    std::optional<absl::Status> commit;  // how the batch in flight ended
    std::vector<Item> events;
    bool stopping = false;
  };

  explicit Inbox(size_t users_max) : users_max_(users_max) {}

  // False: too many users' requests are waiting.
  bool Post(Priority priority, core::Event event);
  void PostRenewal(const NodeId& node, int64_t incarnation);
  // In order with the facts of hosts. Wakes nobody either: no host waits for it.
  void PostAcknowledgement(Acknowledgement acknowledgement);
  void PostPardon(Pardon pardon);
  void PostCommit(absl::Status outcome);
  void Stop();

  // What there is, or after `deadline` nothing.
  Items Wait(std::chrono::steady_clock::time_point deadline);

 private:
  bool Empty() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const size_t users_max_;

  Mutex mutex_;
  CondVar not_empty_;
  std::array<std::deque<Item>, 3> events_ ABSL_GUARDED_BY(mutex_);
  std::vector<Renewal> renewals_ ABSL_GUARDED_BY(mutex_);
  std::optional<absl::Status> commit_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool stop_seen_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace llmctl::runtime
