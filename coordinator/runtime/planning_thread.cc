#include "coordinator/runtime/planning_thread.h"

#include <utility>

#include "common/base/check.h"
#include "common/base/instant.h"

namespace llmctl::runtime {

PlanningThread::PlanningThread(Done done) : done_(std::move(done)), thread_([this] { Run(); }) {}

PlanningThread::~PlanningThread() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    changed_.NotifyOne();
  }
  thread_.join();
}

void PlanningThread::MakePlan(placement::Snapshot snapshot) {
  MutexLock lock(mutex_);
  CHECK(!next_) << "a snapshot is still waiting for the planning thread";
  next_ = std::move(snapshot);
  changed_.NotifyOne();
}

void PlanningThread::Run() {
  while (true) {
    placement::Snapshot snapshot;
    {
      MutexLock lock(mutex_);
      while (!next_ && !stopping_) changed_.Wait(mutex_);
      if (stopping_) return;
      snapshot = *std::exchange(next_, std::nullopt);
    }
    Instant begin = Now();
    Plan plan = placement::MakePlan(std::move(snapshot));
    done_(std::move(plan), Now() - begin);
  }
}

}  // namespace llmctl::runtime
