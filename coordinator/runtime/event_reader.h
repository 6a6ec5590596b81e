// EventReader: reads the histories of jobs, on a thread that may wait for the disk.
//
// A read waits while a commit holds the store, and a commit as long as the disk takes. The threads that ask also carry
// the hosts' heartbeats: were they to wait, a slow disk would cost hosts their leases. (A second connection would not
// wait for commits, but the store's file is held exclusively: see sqlite_store.h.)
//
// Every question is answered once. Few may wait; beyond that they are refused. Thread-safe; answers run on the reader's
// thread, or at once on the asking one, and must not block.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "common/base/ids.h"
#include "common/base/mutex.h"
#include "coordinator/store/store.h"

namespace llmctl::runtime {

class EventReader {
 public:
  using Answer = std::function<void(absl::StatusOr<std::vector<JobEventRecord>>)>;
  struct Question {
    JobId job;
    int64_t after = 0;
    int limit = 0;
  };

  // `store` outlives the reader.
  EventReader(store::Store& store, size_t waiting_max);
  // Closes, and waits for the read under way.
  ~EventReader();
  EventReader(const EventReader&) = delete;
  EventReader& operator=(const EventReader&) = delete;

  void Ask(Question question, Answer answer);
  // Answers those that wait, and later ones at once. The read under way is answered when the store has done it.
  void Close(absl::Status status);

 private:
  struct Waiting {
    Question question;
    Answer answer;
  };
  void Run();

  store::Store& store_;
  const size_t waiting_max_;

  Mutex mutex_;
  CondVar changed_;
  std::deque<Waiting> waiting_ ABSL_GUARDED_BY(mutex_);
  absl::Status closed_ ABSL_GUARDED_BY(mutex_);  // why nothing is read any more; OK: it is
  std::thread thread_;  // last: runs on the fields above
};

}  // namespace llmctl::runtime
