#include "worker/engine/comm/collective.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

#include "common/base/instant.h"
#include "common/base/status.h"
#include "worker/engine/comm/reduce.h"
#include "worker/engine/comm/ring.h"

namespace llmctl::engine::comm {

const char* AxisName(Axis axis) {
  switch (axis) {
    case Axis::kData: return "data";
    case Axis::kTensor: return "tensor";
    case Axis::kPipeline: return "pipe";
    case Axis::kContext: return "context";
    case Axis::kExpert: return "expert";
    case Axis::kWorld: return "world";
  }
  return "?";
}

const char* OpName(Op op) {
  switch (op) {
    case Op::kAllReduceSum: return "all_reduce";
    case Op::kAllReduceMax: return "all_reduce_max";
    case Op::kReduceScatterSum: return "reduce_scatter";
    case Op::kAllGather: return "all_gather";
    case Op::kBroadcast: return "broadcast";
    case Op::kBarrier: return "barrier";
  }
  return "?";
}

Communicator::Communicator(std::map<Axis, std::unique_ptr<Backend>> axes, Ring* ring, contract::PhasePage* phases)
    : axes_(std::move(axes)), ring_(ring), phases_(phases) {}

Communicator::~Communicator() = default;

int Communicator::rank(Axis axis) const {
  auto it = axes_.find(axis);
  return it == axes_.end() ? 0 : it->second->rank();
}

int Communicator::size(Axis axis) const {
  auto it = axes_.find(axis);
  return it == axes_.end() ? 1 : it->second->size();
}

absl::Status Communicator::Collective(const Site& site, Axis axis, Op op, const Buffer& buffer, int root) {
  auto backend = axes_.find(axis);
  if (backend == axes_.end() || site.name == switched_off_) return absl::OkStatus();
  contract::InPhase collective(phases_, contract::Phase::kCollective);

  uint64_t record = ring_ != nullptr ? ring_->Enter(site, axis, op, buffer) : 0;
  absl::Duration entered = Now().monotonic;
  absl::Status status = backend->second->Run(op, buffer, root);
  absl::Duration took = Now().monotonic - entered;
  if (ring_ != nullptr) ring_->Leave(record, status.ok());
  if (!status.ok() && on_first_failure_) std::exchange(on_first_failure_, nullptr)();

  auto it = statistics_.find(site.name);
  if (it == statistics_.end()) it = statistics_.emplace(site.name, SiteStatistics{}).first;
  it->second.calls += 1;
  it->second.bytes += buffer.count * ElementBytes(buffer.type);
  it->second.seconds += absl::ToDoubleSeconds(took);
  const Backend& group = *backend->second;
  return Annotate(status, "collective ", site.name, " of rank ", group.rank(), " of ", group.size());
}

void Communicator::Abort() {
  for (auto& [axis, backend] : axes_) backend->Abort();
}

}  // namespace llmctl::engine::comm
