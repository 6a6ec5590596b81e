// A pipeline that gives the same result for any number of threads: items are made in order on one thread, worked on
// by several, and consumed in order on the calling one. At most `in_flight_max` items exist at a time, which bounds
// the memory.
//
//   OrderedPipeline<Chunk, Documents> pipeline(threads, in_flight_max);
//   absl::Status status = pipeline.Run(make, [](int worker, Chunk& chunk) { ... }, consume);
//
// `make` returns null at the end. The first error, of make or consume, stops all and is returned.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "common/base/mutex.h"

namespace llmctl::data {

template <typename Item, typename Result>
class OrderedPipeline {
 public:
  using Make = std::function<absl::StatusOr<std::unique_ptr<Item>>()>;
  using Work = std::function<Result(int worker, Item&)>;
  using Consume = std::function<absl::Status(Result)>;

  OrderedPipeline(int workers, int in_flight_max) : workers_(workers), in_flight_max_(in_flight_max) {}

  absl::Status Run(const Make& make, const Work& work, const Consume& consume) {
    std::vector<std::thread> threads;
    threads.emplace_back([&] { MakeAll(make); });
    for (int i = 0; i < workers_; ++i) threads.emplace_back([&, i] { WorkAll(i, work); });
    absl::Status status = ConsumeAll(consume);
    {
      MutexLock lock(mutex_);
      stopping_ = true;
      changed_.NotifyAll();
    }
    for (std::thread& thread : threads) thread.join();
    return status;
  }

 private:
  void MakeAll(const Make& make) {
    while (true) {
      absl::StatusOr<std::unique_ptr<Item>> item = make();
      MutexLock lock(mutex_);
      if (!item.ok() || *item == nullptr) {
        made_status_ = item.status();
        made_all_ = true;
        changed_.NotifyAll();
        return;
      }
      while (!stopping_ && made_ - consumed_ >= in_flight_max_) changed_.Wait(mutex_);
      if (stopping_) return;
      waiting_.emplace_back(made_++, *std::move(item));
      changed_.NotifyAll();
    }
  }

  void WorkAll(int worker, const Work& work) {
    while (true) {
      std::pair<int64_t, std::unique_ptr<Item>> item;
      {
        MutexLock lock(mutex_);
        while (!stopping_ && waiting_.empty() && !made_all_) changed_.Wait(mutex_);
        if (stopping_ || waiting_.empty()) return;
        item = std::move(waiting_.front());
        waiting_.pop_front();
      }
      Result result = work(worker, *item.second);
      item.second.reset();
      MutexLock lock(mutex_);
      done_.emplace(item.first, std::move(result));
      changed_.NotifyAll();
    }
  }

  absl::Status ConsumeAll(const Consume& consume) {
    for (int64_t next = 0;; ++next) {
      Result result;
      {
        MutexLock lock(mutex_);
        while (!done_.contains(next) && !(made_all_ && next == made_)) changed_.Wait(mutex_);
        auto at = done_.find(next);
        if (at == done_.end()) return made_status_;
        result = std::move(at->second);
        done_.erase(at);
      }
      absl::Status status = consume(std::move(result));
      if (!status.ok()) return status;
      MutexLock lock(mutex_);
      consumed_ = next + 1;
      changed_.NotifyAll();
    }
  }

  const int workers_;
  const int in_flight_max_;
  Mutex mutex_;
  CondVar changed_;
  std::deque<std::pair<int64_t, std::unique_ptr<Item>>> waiting_ ABSL_GUARDED_BY(mutex_);
  std::map<int64_t, Result> done_ ABSL_GUARDED_BY(mutex_);
  int64_t made_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t consumed_ ABSL_GUARDED_BY(mutex_) = 0;
  bool made_all_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status made_status_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace llmctl::data
