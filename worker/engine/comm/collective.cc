#include "worker/engine/comm/collective.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

#include "common/base/instant.h"
#include "common/base/status.h"
#include "worker/engine/comm/reduce.h"
#include "worker/engine/comm/ring.h"

namespace llmctl::engine::comm {

Communicator::Communicator(std::map<Axis, std::unique_ptr<Backend>> axes, Ring* ring)
    : axes_(std::move(axes)), ring_(ring) {}

Communicator::~Communicator() = default;

int Communicator::rank(Axis axis) const {
  auto it = axes_.find(axis);
  return it == axes_.end() ? 0 : it->second->rank();
}

int Communicator::size(Axis axis) const {
  auto it = axes_.find(axis);
  return it == axes_.end() ? 1 : it->second->size();
}

absl::Status Communicator::Collective(absl::string_view site, Axis axis, Op op, const Buffer& buffer, int root) {
  auto backend = axes_.find(axis);
  if (backend == axes_.end() || site == switched_off_) return absl::OkStatus();

  uint64_t record = ring_ != nullptr ? ring_->Enter(site, axis, op, buffer) : 0;
  absl::Duration entered = Now().monotonic;
  absl::Status status = backend->second->Run(op, buffer, root);
  absl::Duration took = Now().monotonic - entered;
  if (ring_ != nullptr) ring_->Leave(record, status.ok());

  auto it = statistics_.find(site);
  if (it == statistics_.end()) it = statistics_.emplace(site, SiteStatistics{}).first;
  it->second.calls += 1;
  it->second.bytes += buffer.count * ElementBytes(buffer.type);
  it->second.seconds += absl::ToDoubleSeconds(took);
  return Annotate(status, "collective ", site, " of rank ", backend->second->rank(), " of ", backend->second->size());
}

void Communicator::Abort() {
  for (auto& [axis, backend] : axes_) backend->Abort();
}

}  // namespace llmctl::engine::comm
