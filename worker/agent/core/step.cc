#include "worker/agent/core/step.h"

#include <variant>

#include "common/base/overloaded.h"
#include "worker/agent/core/transitions.h"

namespace llmctl::agent {
namespace {

// A shim that hangs must not keep a whole host away from the coordinator.
constexpr absl::Duration kCatchUpTimeout = absl::Seconds(5);
// Longer than a coordinator waits for the checks of a gang, and its own absence meanwhile.
constexpr absl::Duration kProbeLifetime = absl::Minutes(2);

void Start(State& state, Commands& out) {
  Arm(state, {.purpose = Timer::Purpose::kCatchUp}, kCatchUpTimeout, out);
  EndLink(state, out);
  DialWhenCaughtUp(state, out);
  KeepStandbys(state, out);
}

void Probe(State& state, const ProbeOrdered& order, Commands& out) {
  if (order.write) {
    auto written = state.written_probes.find(order.generation);
    if (written != state.written_probes.end() && written->second.nonce != order.nonce) {
      RemoveWrittenProbe(state, order.generation, out);
    }
    int64_t expiry =
        Arm(state, {.purpose = Timer::Purpose::kProbeExpiry, .generation = order.generation}, kProbeLifetime, out);
    state.written_probes[order.generation] = {order.checkpoint_directory, order.nonce, expiry};
  }
  out.push_back(RunProbe{order});
}

void ExpireProbe(State& state, int64_t timer, const GenerationId& generation, Commands& out) {
  auto written = state.written_probes.find(generation);
  if (written != state.written_probes.end() && written->second.expiry == timer) {
    RemoveWrittenProbe(state, generation, out);
  }
}

void GiveUpCatchingUp(State& state, Commands& out) {
  for (auto& [id, gang] : state.gangs) {
    for (auto& [number, rank] : gang.ranks) rank.catching_up = false;
  }
  DialWhenCaughtUp(state, out);
}

void FireTimer(State& state, const TimerFired& event, Commands& out) {
  auto it = state.timers.find(event.timer);
  if (it == state.timers.end()) return;
  Timer timer = it->second;
  state.timers.erase(it);
  switch (timer.purpose) {
    case Timer::Purpose::kHeartbeat:
      if (timer.link == state.links) SendHeartbeat(state, out);
      return;
    case Timer::Purpose::kOrphan:
      if (timer.link == state.links) StopOrphans(state, timer.generation, out);
      return;
    case Timer::Purpose::kYieldDeadline: return EndYield(state, timer.generation, out);
    case Timer::Purpose::kCatchUp: return GiveUpCatchingUp(state, out);
    case Timer::Purpose::kProbeExpiry: return ExpireProbe(state, event.timer, timer.generation, out);
    case Timer::Purpose::kStandby: return StartDueStandby(state, out);
  }
}

}  // namespace

std::vector<Command> Step(State& state, const Event& event, Instant /*now*/) {
  Commands out;
  // Most steps ask for no more.
  out.reserve(3);
  std::visit(Overloaded{
                 [&](const ShimFound& e) { AdoptShim(state, e); },
                 [&](const AgentStarted&) { Start(state, out); },
                 [&](const ShimConnected& e) { GreetShim(state, e, out); },
                 [&](const ShimDisconnected& e) { LoseShimLink(state, e); },
                 [&](const ShimMessage& e) { HandleShimMessage(state, e, out); },
                 [&](const RankExited& e) { EndRank(state, e, out); },
                 [&](const StandbyConnected& e) { AdmitStandby(state, e, out); },
                 [&](const StandbyReady& e) { MarkStandbyReady(state, e, out); },
                 [&](const StandbyEnded& e) { LoseStandby(state, e, out); },
                 [&](const CoordinatorConnected&) { SendHello(state, out); },
                 [&](const CoordinatorWelcomed& e) { BeginLink(state, e, out); },
                 [&](const CoordinatorDisconnected&) {
                   if (state.welcomed) EndLink(state, out);
                 },
                 [&](const HeartbeatAnswered& e) { ConfirmTold(state, e, out); },
                 [&](const ProbeOrdered& e) { Probe(state, e, out); },
                 [&](const ProbeFinished& e) {
                   if (state.welcomed) out.push_back(SendToCoordinator{e.result});
                 },
                 [&](const PreflightOrdered& e) { BeginPreflight(state, e, out); },
                 [&](const PreflightFinished& e) { EndPreflight(state, e, out); },
                 [&](const StartOrdered& e) { StartGang(state, e, out); },
                 [&](const StopOrdered& e) { StopGang(state, e, out); },
                 [&](const CheckpointOrdered& e) { AskForCheckpoint(state, e, out); },
                 [&](const StoreAnswered& e) { PassStoreReply(state, e, out); },
                 [&](const CommitAnswered& e) { PassCommitReply(state, e, out); },
                 [&](const TimerFired& e) { FireTimer(state, e, out); },
             },
             event);
  return out;
}

}  // namespace llmctl::agent
