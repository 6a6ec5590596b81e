#include "simulator/network.h"

#include <algorithm>
#include <utility>
#include <variant>

namespace llmctl::simulator {
namespace {

bool MayRepeat(const agent::AgentMessage& message) {
  return !std::holds_alternative<agent::Hello>(message) && !std::holds_alternative<agent::Heartbeat>(message);
}

bool MayRepeat(const agent::Event& message) {
  return !std::holds_alternative<agent::CoordinatorWelcomed>(message) &&
         !std::holds_alternative<agent::HeartbeatAnswered>(message);
}

}  // namespace

Network::Network(Simulation& sim, int hosts) : sim_(sim), blocked_(hosts) {}

int64_t Network::Open(int host) {
  int64_t id = next_link_++;
  links_[id].host = host;
  return id;
}

void Network::Send(int64_t id, bool up, std::function<void()> deliver) {
  Link& link = links_.at(id);
  Direction& direction = up ? link.up : link.down;
  absl::Duration delay = sim_.Between(absl::Milliseconds(1), absl::Milliseconds(sim_.Chance(0.02) ? 2000 : 20));
  absl::Duration at = std::max(sim_.now().monotonic + delay, direction.last);
  direction.last = at;
  sim_.After(at - sim_.now().monotonic, [this, id, up, deliver = std::move(deliver)] { Arrive(id, up, deliver); });
}

void Network::Arrive(int64_t id, bool up, std::function<void()> deliver) {
  auto found = links_.find(id);
  if (found == links_.end()) return;
  Direction& direction = up ? found->second.up : found->second.down;
  const Blocked& blocked = blocked_[found->second.host];
  if ((up ? blocked.up : blocked.down) || !direction.held.empty()) {
    direction.held.push_back(std::move(deliver));
    return;
  }
  deliver();
}

void Network::ToCoordinator(int64_t id, agent::AgentMessage message) {
  auto found = links_.find(id);
  if (found == links_.end() || !found->second.open_at_agent) return;
  bool twice = MayRepeat(message) && sim_.Chance(repeats_);
  if (twice) sim_.Reached("message repeated");
  auto deliver = [this, id, host = found->second.host, message = std::move(message)] {
    auto link = links_.find(id);
    if (link != links_.end() && link->second.open_at_coordinator) ends_.at_coordinator(id, host, message);
  };
  if (twice) Send(id, true, deliver);
  Send(id, true, std::move(deliver));
}

void Network::ToAgent(int64_t id, agent::Event message) {
  auto found = links_.find(id);
  if (found == links_.end() || !found->second.open_at_coordinator) return;
  bool twice = MayRepeat(message) && sim_.Chance(repeats_);
  if (twice) sim_.Reached("message repeated");
  auto deliver = [this, id, host = found->second.host, message = std::move(message)] {
    auto link = links_.find(id);
    if (link != links_.end() && link->second.open_at_agent) ends_.at_agent(id, host, message);
  };
  if (twice) Send(id, false, deliver);
  Send(id, false, std::move(deliver));
}

void Network::CloseAtAgent(int64_t id) {
  auto found = links_.find(id);
  if (found == links_.end() || !found->second.open_at_agent) return;
  found->second.open_at_agent = false;
  Send(id, true, [this, id] {
    auto link = links_.find(id);
    if (link == links_.end()) return;
    int host = link->second.host;
    bool was_open = link->second.open_at_coordinator;
    links_.erase(link);
    if (was_open) ends_.closed_at_coordinator(id, host);
  });
}

void Network::CloseAtCoordinator(int64_t id) {
  auto found = links_.find(id);
  if (found == links_.end() || !found->second.open_at_coordinator) return;
  found->second.open_at_coordinator = false;
  Send(id, false, [this, id] {
    auto link = links_.find(id);
    if (link == links_.end()) return;
    int host = link->second.host;
    bool was_open = link->second.open_at_agent;
    links_.erase(link);
    if (was_open) ends_.closed_at_agent(id, host);
  });
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
    if (link.host == host) ids.push_back(id);
  }
  for (int64_t id : ids) Drain(id, up);
}

void Network::Drain(int64_t id, bool up) {
  auto found = links_.find(id);
  if (found == links_.end()) return;
  std::deque<std::function<void()>>& held = (up ? found->second.up : found->second.down).held;
  const Blocked& blocked = blocked_[found->second.host];
  if (held.empty() || (up ? blocked.up : blocked.down)) return;
  // What arrives meanwhile lines up behind, so the order holds.
  std::function<void()> deliver = std::move(held.front());
  held.pop_front();
  deliver();
  sim_.After(absl::ZeroDuration(), [this, id, up] { Drain(id, up); });
}

void Network::Cut(int host) {
  std::vector<std::pair<int64_t, Link>> cut;
  for (const auto& [id, link] : links_) {
    if (link.host == host) cut.emplace_back(id, link);
  }
  for (const auto& [id, link] : cut) {
    links_.erase(id);
    if (link.open_at_agent) ends_.closed_at_agent(id, host);
    if (link.open_at_coordinator) ends_.closed_at_coordinator(id, host);
  }
}

void Network::CutAll() {
  for (size_t host = 0; host < blocked_.size(); ++host) Cut(static_cast<int>(host));
}

}  // namespace llmctl::simulator
