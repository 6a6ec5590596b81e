// Persist before send, without waiting: the core goes on stepping while earlier steps are being committed, and
// what each step wants to say leaves when that step, and all before it, are durable.
//
// Steps queue up. Begin() takes all that wait as one batch (one fsync for many steps); while it is in flight,
// new steps gather for the next. A step without record changes still waits for the steps before it: it may have
// been decided on what they wrote. A failed batch stays at the head, and the next Begin() takes it again
// together with what came since; records are whole, so committing twice is harmless.
//
// Invariant: steps leave TakeDurable() in the order of Add(), each once, and never before its batch succeeded.
// Pure, single-threaded: the runtime's core thread, or the simulator.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "coordinator/runtime/step_output.h"
#include "coordinator/store/store.h"

namespace llmctl::runtime {

class CommitPipeline {
 public:
  // `inward` commands of the step are the caller's business and not kept.
  void Add(StepOutput step);
  // A host wants to know when all steps so far are durable. Its earlier wish is dropped where it would be fulfilled at
  // the same moment: a disk that fails for a night costs no memory by the heartbeat.
  void Acknowledge(int64_t link, std::function<void()> give, int64_t revision);

  // The next batch, of at least one change; null while one is in flight or nothing waits to be written.
  std::shared_ptr<const std::vector<store::Change>> Begin();
  // How the batch in flight ended.
  void Succeeded();
  void Failed();

  // Steps that may be published and whose outbox may leave now.
  std::vector<StepOutput> TakeDurable();

  // Those that are not durable yet, in order.
  void VisitWaiting(const std::function<void(const StepOutput&)>& visit) const;

  bool in_flight() const { return in_flight_ > 0; }
  bool empty() const { return steps_.empty(); }
  size_t size() const { return steps_.size(); }

 private:
  // What wrote nothing needs no commit of its own once all before it is durable.
  void PassEmptySteps();
  // All that waits will be one batch: one step can carry the wishes of all.
  void GatherAcknowledgements();

  std::deque<StepOutput> steps_;  // durable ones, then those in flight, then waiting ones
  size_t durable_ = 0;
  size_t in_flight_ = 0;
};

// `batch` without what a later change of the same batch replaces.
std::vector<store::Change> DropReplaced(std::vector<store::Change> batch);

}  // namespace llmctl::runtime
