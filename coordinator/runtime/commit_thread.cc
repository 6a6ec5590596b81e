#include "coordinator/runtime/commit_thread.h"

#include <utility>

#include "common/base/check.h"
#include "common/base/instant.h"

namespace llmctl::runtime {

CommitThread::CommitThread(store::Store& store, int64_t term, Done done)
    : store_(store), term_(term), done_(std::move(done)), thread_([this] { Run(); }) {}

CommitThread::~CommitThread() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    changed_.NotifyOne();
  }
  thread_.join();
}

void CommitThread::Commit(Batch batch) {
  MutexLock lock(mutex_);
  CHECK(next_ == nullptr) << "a batch is still waiting for the commit thread";
  next_ = std::move(batch);
  changed_.NotifyOne();
}

void CommitThread::Run() {
  while (true) {
    Batch batch;
    {
      MutexLock lock(mutex_);
      while (!next_ && !stopping_) changed_.Wait(mutex_);
      if (!next_) return;
      batch = std::exchange(next_, nullptr);
    }
    Instant begin = Now();
    absl::Status outcome = store_.Commit(term_, *batch);
    done_(std::move(outcome), Now() - begin);
  }
}

}  // namespace llmctl::runtime
