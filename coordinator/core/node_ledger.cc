#include "coordinator/core/node_ledger.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"

#include "coordinator/core/handlers.h"

namespace llmctl::core {
namespace {

bool IsQuarantined(const NodeStanding& standing) {
  return standing.trust == NodeTrust::kQuarantined || standing.trust == NodeTrust::kBurnIn;
}

bool MayQuarantine(const State& state) {
  int nodes = 0;
  int quarantined = 0;
  for (const auto& [id, node] : state.nodes) {
    if (node.state != NodeState::kReady) continue;
    ++nodes;
    quarantined += IsQuarantined(node.standing);
  }
  return nodes >= 2 && quarantined < std::max(1, nodes / kQuarantineShare);
}

int RoundsOf(const NodeStanding& standing) {
  // The shift is bounded before it can overflow.
  int doublings = std::clamp(standing.quarantines - 1, 0, 8);
  return std::min(kBurnInRoundsFirst << doublings, kBurnInRoundsMost);
}

// Of a wait that began at trust_time.
absl::Duration LeftOf(absl::Duration wait, const NodeStanding& standing, absl::Time now) {
  if (standing.trust_time == absl::InfinitePast()) return wait;
  return std::clamp(wait - (now - standing.trust_time), absl::ZeroDuration(), wait);
}

void WantPreflight(Turn& turn, Node& node) {
  node.standing.preflight_wanted = true;
  turn.Save(node);
  turn.state.unsettled.insert(node.id);
}

void Quarantine(Turn& turn, Node& node, const std::string& reason) {
  NodeStanding& standing = node.standing;
  standing.trust = NodeTrust::kQuarantined;
  standing.quarantine_reason = reason;
  ++standing.quarantines;
  standing.burn_in_passed = 0;
  standing.burn_in_wait = absl::ZeroDuration();
  turn.Disarm(node.id, Timer::Purpose::kParole);
  turn.Save(node);
  turn.state.unsettled.insert(node.id);
  turn.RequestPlan();
}

void BeginParole(Turn& turn, Node& node) {
  NodeStanding& standing = node.standing;
  standing.trust = NodeTrust::kParole;
  standing.trust_time = turn.now.wall;
  standing.burn_in_wait = absl::ZeroDuration();
  standing.quarantine_reason.clear();
  // What brought it here has been paid for, half of it: else the next trifle would bring it back.
  standing.strike_score = std::min(StrikesOf(standing, turn.now.wall), kStrikesTolerated / 2);
  standing.strike_time = turn.now.wall;
  turn.Save(node);
  turn.Disarm(node.id, Timer::Purpose::kBurnIn);
  turn.Arm({.purpose = Timer::Purpose::kParole, .node = node.id}, kParolePeriod);
  turn.RequestPlan();
}

void FailBurnIn(Turn& turn, Node& node) {
  NodeStanding& standing = node.standing;
  standing.trust = NodeTrust::kQuarantined;
  standing.quarantine_reason = absl::StrCat("its burn-in failed: ", standing.preflight->failure);
  standing.burn_in_passed = 0;
  standing.trust_time = turn.now.wall;
  standing.burn_in_wait =
      std::min(kBurnInRetryFirst * (int64_t{1} << std::min(standing.burn_in_failed, 8)), kBurnInRetryMost);
  ++standing.burn_in_failed;
  turn.Save(node);
  turn.Arm({.purpose = Timer::Purpose::kBurnIn, .node = node.id}, standing.burn_in_wait);
}

void PassBurnIn(Turn& turn, Node& node) {
  ++node.standing.burn_in_passed;
  turn.Save(node);
  if (node.standing.burn_in_passed < RoundsOf(node.standing)) {
    WantPreflight(turn, node);
  } else {
    BeginParole(turn, node);
  }
}

void OrderPreflight(Turn& turn, Node& node) {
  int64_t number = ++node.standing.last_preflight;
  turn.Save(node);
  turn.state.preflights[node.id] = number;
  turn.SendToHost(node.id, RunPreflight{node.id, number});
}

void WaitForIdleness(Turn& turn, const Node& node) {
  turn.state.preflights[node.id] = 0;
  turn.Arm({.purpose = Timer::Purpose::kPreflight, .node = node.id}, kPreflightIdle);
}

bool HasTimer(const State& state, const NodeId& node, Timer::Purpose purpose) {
  return std::any_of(state.timers.begin(), state.timers.end(), [&](const auto& entry) {
    return entry.second.node == node && entry.second.purpose == purpose;
  });
}

}  // namespace

double StrikesOf(const NodeStanding& standing, absl::Time now) {
  if (standing.strike_time == absl::InfinitePast()) return 0;
  double half_lives = absl::FDivDuration(now - standing.strike_time, kStrikeHalfLife);
  return standing.strike_score * std::exp2(-std::max(half_lives, 0.0));
}

void StrikeNode(Turn& turn, const NodeId& id, Strike strike) {
  auto found = turn.state.nodes.find(id);
  if (found == turn.state.nodes.end() || strike.weight <= 0) return;
  Node& node = found->second;
  NodeStanding& standing = node.standing;
  const std::string reason = strike.reason;
  bool serious = strike.weight >= kStrikeSerious;
  strike.time = turn.now.wall;
  standing.strike_score = StrikesOf(standing, turn.now.wall) + strike.weight;
  standing.strike_time = turn.now.wall;
  standing.strikes.push_back(std::move(strike));
  if (standing.strikes.size() > kStrikesKept) standing.strikes.erase(standing.strikes.begin());
  turn.Save(node);
  if (IsQuarantined(standing)) return;
  bool beyond = standing.strike_score >= kStrikesTolerated || (serious && standing.trust == NodeTrust::kParole);
  if (beyond && MayQuarantine(turn.state)) {
    Quarantine(turn, node, reason);
  } else if (serious) {
    WantPreflight(turn, node);
  }
}

void Pardon(Turn& turn, Node& node) {
  if (!IsQuarantined(node.standing)) return;
  node.standing.preflight_wanted = false;
  ForgetPreflight(turn, node.id);
  BeginParole(turn, node);
}

void RegisterNode(Turn& turn, Node& node, const std::optional<Node>& before) {
  ForgetPreflight(turn, node.id);
  const std::optional<PreflightReport>& tested = node.standing.preflight;
  if (!tested.has_value() || tested->boot_id != node.boot_id) WantPreflight(turn, node);
  if (!before.has_value()) return;
  if (before->boot_id != node.boot_id) {
    // Whoever drains a host may turn it off.
    if (node.standing.service == NodeService::kDrained) return;
    StrikeNode(turn, node.id, {.weight = kStrikeRebooted, .reason = "it was restarted without having been drained"});
  } else if (before->state == NodeState::kLost) {
    StrikeNode(turn, node.id, {.weight = kStrikeLinkLost, .reason = "it was silent for longer than its lease"});
  }
}

void ForgetPreflight(Turn& turn, const NodeId& node) {
  turn.state.preflights.erase(node);
  turn.Disarm(node, Timer::Purpose::kPreflight);
}

void OnPreflightFinished(Turn& turn, const PreflightFinished& event) {
  auto running = turn.state.preflights.find(event.node);
  if (running == turn.state.preflights.end() || running->second != event.number) return;
  turn.state.preflights.erase(running);
  Node& node = turn.state.nodes.at(event.node);
  if (!node.standing.preflight_wanted) return;
  if (event.interrupted) {
    WaitForIdleness(turn, node);
    return;
  }
  node.standing.preflight = event.report;
  node.standing.preflight->time = turn.now.wall;
  node.standing.preflight->boot_id = node.boot_id;
  node.standing.preflight_wanted = false;
  turn.Save(node);
  bool burn_in = node.standing.trust == NodeTrust::kBurnIn;
  if (burn_in && event.report.passed) PassBurnIn(turn, node);
  if (burn_in && !event.report.passed) FailBurnIn(turn, node);
  if (!burn_in && !event.report.passed) {
    StrikeNode(turn, node.id,
               {.weight = kStrikeUnfit, .reason = absl::StrCat("its pre-flight failed: ", event.report.failure)});
    // Where it may not be quarantined, the same test again would only add strikes.
    node.standing.preflight_wanted = false;
  }
}

void OnPreflightTimer(Turn& turn, const NodeId& id) {
  turn.state.preflights.erase(id);
  Node& node = turn.state.nodes.at(id);
  if (node.standing.preflight_wanted && IsEmpty(turn.state, id)) OrderPreflight(turn, node);
}

void EndParole(Turn& turn, const NodeId& id) {
  Node& node = turn.state.nodes.at(id);
  node.standing.trust = NodeTrust::kTrusted;
  node.standing.burn_in_failed = 0;
  turn.Save(node);
}

void ResumeWaits(Turn& turn, const Node& node) {
  const NodeStanding& standing = node.standing;
  if (standing.trust == NodeTrust::kParole) {
    turn.Arm({.purpose = Timer::Purpose::kParole, .node = node.id}, LeftOf(kParolePeriod, standing, turn.now.wall));
  } else if (standing.trust == NodeTrust::kQuarantined && standing.burn_in_wait > absl::ZeroDuration()) {
    turn.Arm({.purpose = Timer::Purpose::kBurnIn, .node = node.id},
             LeftOf(standing.burn_in_wait, standing, turn.now.wall));
  }
}

bool AwaitsPreflight(const NodeStanding& standing) { return standing.preflight_wanted || IsQuarantined(standing); }

void SettleLedger(Turn& turn, Node& node) {
  if (!IsEmpty(turn.state, node.id)) return;
  NodeStanding& standing = node.standing;
  if (standing.trust == NodeTrust::kQuarantined && !HasTimer(turn.state, node.id, Timer::Purpose::kBurnIn)) {
    standing.trust = NodeTrust::kBurnIn;
    // A result of before would be taken for the first round's.
    ForgetPreflight(turn, node.id);
    WantPreflight(turn, node);
  }
  if (!standing.preflight_wanted || turn.state.preflights.contains(node.id)) return;
  if (standing.trust == NodeTrust::kBurnIn) {
    OrderPreflight(turn, node);
  } else {
    WaitForIdleness(turn, node);
  }
}

}  // namespace llmctl::core
