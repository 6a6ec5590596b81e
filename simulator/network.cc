#include "simulator/network.h"

#include <algorithm>
#include <utility>
#include <variant>

namespace llmctl::simulator {
namespace {

constexpr absl::Duration kFast = absl::Milliseconds(20);
// How far behind later messages a repeated one may come.
constexpr absl::Duration kRepeatLate = absl::Seconds(8);

bool MayRepeat(const agent::AgentMessage& message) {
  return !std::holds_alternative<agent::Hello>(message) && !std::holds_alternative<agent::Heartbeat>(message);
}

bool MayRepeat(const agent::Event& message) {
  return !std::holds_alternative<agent::CoordinatorWelcomed>(message) &&
         !std::holds_alternative<agent::HeartbeatAnswered>(message);
}

}  // namespace

int64_t Network::Open(Ends ends) {
  int64_t id = next_link_++;
  links_[id].ends = std::move(ends);
  return id;
}

absl::Duration Network::Delay() {
  return sim_.dice().Between(absl::Milliseconds(1), sim_.dice().Happens(slow_share_) ? slowest_ : kFast);
}

absl::Duration Network::DelayInOrder(Direction& direction) {
  absl::Duration at = std::max(sim_.now() + Delay(), direction.last);
  direction.last = at;
  return at - sim_.now();
}

template <typename Message>
void Network::SendMessage(int64_t id, Link& link, Message&& message) {
  Direction& direction = DirectionOf(link, IsUp(message));
  ++direction.under_way;
  sim_.After(DelayInOrder(direction), [this, id, message = std::move(message)]() mutable {
    Arrive(id, IsUp(message), message);
  });
}

void Network::SendClose(int64_t id, Link& link, bool up, Delivery close) {
  Direction& direction = DirectionOf(link, up);
  ++direction.under_way;
  sim_.After(DelayInOrder(direction), [this, id, up, close = std::move(close)]() mutable {
    Arrive(id, up, close);
  });
}

// At once, or behind later ones.
template <typename Message>
void Network::Repeat(int64_t id, Link& link, const Message& message) {
  if (repeats_ == 0 || !MayRepeat(message) || !sim_.dice().Happens(repeats_)) return;
  sim_.Reached(Probe::kMessageRepeated);
  if (sim_.dice().Happens(0.5)) return SendMessage(id, link, Message(message));
  sim_.After(sim_.dice().Between(absl::ZeroDuration(), kRepeatLate), [this, id, message]() mutable {
    auto found = links_.find(id);
    if (found == links_.end()) return;
    sim_.Reached(Probe::kMessageOvertaken);
    ++DirectionOf(found->second, IsUp(message)).under_way;
    Arrive(id, IsUp(message), message);
  });
}

template <typename Content>
void Network::Arrive(int64_t id, bool up, Content& content) {
  auto found = links_.find(id);
  if (found == links_.end()) return;
  Direction& direction = DirectionOf(found->second, up);
  if (IsBlocked(found->second, up) || !direction.held.empty()) {
    direction.held.push_back([this, id, content = std::move(content)]() mutable { Deliver(id, content); });
    return;
  }
  --direction.under_way;
  Deliver(id, content);
}

void Network::Deliver(int64_t id, const agent::AgentMessage& message) {
  auto link = links_.find(id);
  if (link == links_.end() || !link->second.open_at_coordinator) return;
  int64_t& newest = newest_heard_[link->second.ends.host];
  if (id < newest) sim_.Reached(Probe::kOldLinkOvertaken);
  newest = std::max(newest, id);
  receivers_.at_coordinator(id, link->second.ends, message);
}

void Network::Deliver(int64_t id, const agent::Event& message) {
  auto link = links_.find(id);
  if (link != links_.end() && link->second.open_at_agent) receivers_.at_agent(id, link->second.ends, message);
}

void Network::ToCoordinator(int64_t id, agent::AgentMessage message) {
  auto found = links_.find(id);
  if (found == links_.end() || !found->second.open_at_agent) return;
  Repeat(id, found->second, message);
  SendMessage(id, found->second, std::move(message));
}

void Network::ToAgent(int64_t id, agent::Event message) {
  auto found = links_.find(id);
  if (found == links_.end() || !found->second.open_at_coordinator) return;
  Repeat(id, found->second, message);
  SendMessage(id, found->second, std::move(message));
}

void Network::CloseAtAgent(int64_t id) {
  auto found = links_.find(id);
  if (found == links_.end() || !found->second.open_at_agent) return;
  found->second.open_at_agent = false;
  SendClose(id, found->second, true, [this, id] {
    auto link = links_.find(id);
    if (link == links_.end()) return;
    Ends ends = std::move(link->second.ends);
    bool was_open = link->second.open_at_coordinator;
    links_.erase(link);
    if (was_open) receivers_.closed_at_coordinator(id, ends);
  });
}

void Network::CloseAtCoordinator(int64_t id) {
  auto found = links_.find(id);
  if (found == links_.end() || !found->second.open_at_coordinator) return;
  found->second.open_at_coordinator = false;
  SendClose(id, found->second, false, [this, id] {
    auto link = links_.find(id);
    if (link == links_.end()) return;
    Ends ends = std::move(link->second.ends);
    bool was_open = link->second.open_at_agent;
    links_.erase(link);
    if (was_open) receivers_.closed_at_agent(id, ends);
  });
}

void Network::Hold(int64_t link, absl::Duration length) {
  auto found = links_.find(link);
  if (found != links_.end()) found->second.up.last = sim_.now() + length;
}

void Network::Block(int host, bool towards_coordinator, bool towards_agent) {
  blocked_[host] = {towards_coordinator, towards_agent};
}

void Network::Unblock(int host) {
  blocked_[host] = {};
  Flush(host, true);
  Flush(host, false);
}

void Network::Flush(int host, bool up) {
  std::vector<int64_t> ids;
  for (const auto& [id, link] : links_) {
    if (link.ends.host == host) ids.push_back(id);
  }
  for (int64_t id : ids) Drain(id, up);
}

void Network::Drain(int64_t id, bool up) {
  auto found = links_.find(id);
  if (found == links_.end()) return;
  Direction& direction = DirectionOf(found->second, up);
  if (direction.held.empty() || IsBlocked(found->second, up)) return;
  // What arrives meanwhile lines up behind, so the order holds.
  Delivery delivery = std::move(direction.held.front());
  direction.held.pop_front();
  --direction.under_way;
  delivery();
  sim_.After(absl::ZeroDuration(), [this, id, up] { Drain(id, up); });
}

template <typename Which>
void Network::CutWhere(Which which) {
  std::vector<std::map<int64_t, Link>::node_type> cut;
  for (auto it = links_.begin(); it != links_.end();) {
    auto at = it++;
    const Link& link = at->second;
    if (!which(link.ends)) continue;
    if (link.up.under_way + link.down.under_way > 0) sim_.Reached(Probe::kMessageLost);
    cut.push_back(links_.extract(at));
  }
  for (const auto& node : cut) {
    const Link& link = node.mapped();
    if (link.open_at_agent) receivers_.closed_at_agent(node.key(), link.ends);
    if (link.open_at_coordinator) receivers_.closed_at_coordinator(node.key(), link.ends);
  }
}

void Network::Cut(int host) {
  CutWhere([host](const Ends& ends) { return ends.host == host; });
}

void Network::CutCoordinator(int coordinator) {
  CutWhere([coordinator](const Ends& ends) { return ends.coordinator == coordinator; });
}

void Network::Heal() {
  repeats_ = 0;
  SetUsualSpeed();
  for (size_t host = 0; host < blocked_.size(); ++host) Unblock(static_cast<int>(host));
}

}  // namespace llmctl::simulator
