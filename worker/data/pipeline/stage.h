// A stage of the pipeline: tasks that do not depend on each other, with files between stages.
//
//   clean       read, normalise and judge documents          (a task: some input)
//   exact-*     keys, ranges, repeats                        (dedup/exact_dedup.h)
//   near-*      signatures, bands, clusters                  (dedup/near_dedup.h)
//   encode      what is left, as tokens                      (a task: a segment)
//   write       shards, manifest, report                     (one task)
//
// A task may run in any process that sees the folder, and once more after it was killed: what it leaves is the same. A
// stage starts when all tasks of the one before are done.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace llmctl::data {

// Of all tasks of a stage; read by whoever shows it.
struct StageProgress {
  std::atomic<int64_t> done = 0;  // of Stage::amount()
};

// Runs tasks one after another, on one thread.
class StageWorker {
 public:
  virtual ~StageWorker() = default;
  virtual absl::Status Run(int task) = 0;
};

// What the workers of a stage share in one process. Thread-safe.
class Stage {
 public:
  virtual ~Stage() = default;
  virtual int tasks() const = 0;
  // How much there is to do, for the progress shown: bytes of text, unless unit() says otherwise. 0: not known.
  virtual int64_t amount() const = 0;
  virtual absl::string_view unit() const { return "bytes"; }
  // A worker that uses `threads` threads itself (1, unless wants_threads) and about `memory_bytes`.
  virtual absl::StatusOr<std::unique_ptr<StageWorker>> MakeWorker(int threads, int64_t memory_bytes,
                                                                  StageProgress& progress) = 0;
  // One worker can use all threads: that is done where there are few tasks.
  virtual bool wants_threads() const { return false; }
};

}  // namespace llmctl::data
