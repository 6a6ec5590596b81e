#include "coordinator/runtime/event_reader.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace llmctl::runtime {

EventReader::EventReader(store::Store& store, size_t waiting_max)
    : store_(store), waiting_max_(waiting_max), thread_([this] { Run(); }) {}

EventReader::~EventReader() {
  Close(absl::UnavailableError("the coordinator is stopping: try again when it is back"));
  thread_.join();
}

void EventReader::Ask(Question question, Answer answer) {
  absl::Status refused;
  {
    MutexLock lock(mutex_);
    refused = closed_;
    if (refused.ok() && waiting_.size() >= waiting_max_) {
      refused = absl::ResourceExhaustedError(
          absl::StrCat(waiting_max_, " reads of events wait for the coordinator's disk already: try again later"));
    }
    if (refused.ok()) {
      waiting_.push_back({std::move(question), std::move(answer)});
      changed_.NotifyOne();
      return;
    }
  }
  answer(std::move(refused));
}

void EventReader::Close(absl::Status status) {
  std::deque<Waiting> unanswered;
  {
    MutexLock lock(mutex_);
    if (!closed_.ok()) return;
    closed_ = status;
    unanswered.swap(waiting_);
    changed_.NotifyOne();
  }
  for (Waiting& waiting : unanswered) waiting.answer(status);
}

void EventReader::Run() {
  while (true) {
    Waiting next;
    {
      MutexLock lock(mutex_);
      while (waiting_.empty() && closed_.ok()) changed_.Wait(mutex_);
      if (waiting_.empty()) return;
      next = std::move(waiting_.front());
      waiting_.pop_front();
    }
    next.answer(store_.ReadEvents(next.question.job, next.question.after, next.question.limit));
  }
}

}  // namespace llmctl::runtime
