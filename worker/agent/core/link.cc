#include "worker/agent/core/link.h"

#include <algorithm>
#include <utility>

#include "worker/agent/core/transitions.h"

namespace llmctl::agent {
namespace {

// A Hello lists all shims of a host in one message: exit records go in with the end of their tails only.
constexpr size_t kHelloLogTailBytes = 4096;

bool AllExited(const Gang& gang) {
  return std::all_of(gang.ranks.begin(), gang.ranks.end(),
                     [](const auto& entry) { return entry.second.phase == RankPhase::kExited; });
}

RunningShim Describe(const GenerationId& id, int number, const Rank& rank) {
  RunningShim shim = {.generation = id,
                      .rank = number,
                      .device = rank.device,
                      .pid = rank.pid,
                      .phase = rank.phase,
                      .exit = rank.exit};
  if (shim.exit.has_value() && shim.exit->log_tail.size() > kHelloLogTailBytes) {
    shim.exit->log_tail.erase(0, shim.exit->log_tail.size() - kHelloLogTailBytes);
  }
  return shim;
}

void ForgetTold(State& state) {
  for (auto& [id, gang] : state.gangs) {
    gang.confirmed_by_heartbeat.reset();
    for (auto& [number, rank] : gang.ranks) rank.told.reset();
  }
}

}  // namespace

int64_t Arm(State& state, Timer timer, absl::Duration delay, Commands& out) {
  int64_t number = state.next_timer++;
  timer.link = state.links;
  state.timers.emplace(number, std::move(timer));
  out.push_back(ArmTimer{.timer = number, .delay = delay});
  return number;
}

void DialWhenCaughtUp(State& state, Commands& out) {
  if (state.dialled) return;
  for (const auto& [id, gang] : state.gangs) {
    for (const auto& [number, rank] : gang.ranks) {
      if (rank.catching_up) return;
    }
  }
  state.dialled = true;
  out.push_back(DialCoordinator{});
}

void SendHello(State& state, Commands& out) {
  ForgetTold(state);
  Hello hello;
  for (auto& [id, gang] : state.gangs) {
    for (auto& [number, rank] : gang.ranks) {
      hello.shims.push_back(Describe(id, number, rank));
      rank.told = {rank.phase, rank.pid};
    }
  }
  out.push_back(SendToCoordinator{std::move(hello)});
}

void BeginLink(State& state, const CoordinatorWelcomed& event, Commands& out) {
  state.welcomed = true;
  ++state.links;
  state.heartbeat_interval = event.heartbeat_interval;
  for (const auto& [id, gang] : state.gangs) TellGang(state, id, out);
  SendUnansweredAgain(state, out);
  SendHeartbeat(state, out);
}

void EndLink(State& state, Commands& out) {
  state.welcomed = false;
  if (state.preflight.has_value()) state.preflight = kPreflightOfNobody;
  ++state.links;
  ForgetTold(state);
  for (const auto& [id, gang] : state.gangs) {
    if (AllExited(gang) || gang.orphan_timeout == absl::InfiniteDuration()) continue;
    Arm(state, {.purpose = Timer::Purpose::kOrphan, .generation = id}, gang.orphan_timeout, out);
  }
}

void SendHeartbeat(State& state, Commands& out) {
  Heartbeat heartbeat = DescribeStandbys(state);
  heartbeat.sequence = state.next_heartbeat++;
  out.push_back(SendToCoordinator{heartbeat});
  Arm(state, {.purpose = Timer::Purpose::kHeartbeat}, state.heartbeat_interval, out);
}

void TellGang(State& state, const GenerationId& id, Commands& out) {
  if (!state.welcomed) return;
  Gang& gang = state.gangs.at(id);
  for (auto& [number, rank] : gang.ranks) {
    std::pair<RankPhase, int64_t> now = {rank.phase, rank.pid};
    if (rank.told == now) continue;
    rank.told = now;
    out.push_back(SendToCoordinator{RankUpdate{
        .generation = id, .rank = number, .phase = rank.phase, .pid = rank.pid, .exit = rank.exit}});
  }
  if (!AllExited(gang) || gang.confirmed_by_heartbeat.has_value()) return;
  gang.confirmed_by_heartbeat = state.next_heartbeat;
  out.push_back(SendToCoordinator{GangReleased{.generation = id}});
}

void ConfirmTold(State& state, const HeartbeatAnswered& event, Commands& out) {
  for (auto it = state.gangs.begin(); it != state.gangs.end();) {
    const auto& [id, gang] = *it;
    if (!gang.confirmed_by_heartbeat.has_value() || *gang.confirmed_by_heartbeat > event.sequence) {
      ++it;
      continue;
    }
    for (const auto& [number, rank] : gang.ranks) {
      if (rank.shim_connected) {
        out.push_back(SendToShim{.generation = id, .rank = number, .message = contract::Release{}});
      }
      out.push_back(RetireShim{.generation = id, .rank = number});
    }
    it = state.gangs.erase(it);
  }
}

}  // namespace llmctl::agent
