// A supervisor under test: feeds it events and keeps what the last one made it do.
//
// Every step is checked against the invariants. Crash() is what a kill -9 of the agent leaves: the stored part
// of the state, and the shims.
#pragma once

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <gtest/gtest.h>
#include "absl/time/time.h"

#include "worker/agent/core/step.h"

namespace llmctl::agent {

inline GenerationId Generation(int64_t generation, const std::string& job = "j-1") {
  return {.job = JobId(job), .attempt = 1, .generation = generation};
}

inline StartOrdered StartOrder(int64_t generation, std::vector<RankOrder> ranks = {{.rank = 0, .device = 0}}) {
  return {.generation = Generation(generation),
          .world_size = static_cast<int>(ranks.size()),
          .ranks = std::move(ranks),
          .start = {.trainer_config = "{}", .orphan_timeout = absl::Minutes(10)}};
}

class Host {
 public:
  Host() { state.devices = {0, 1, 2, 3}; }

  Host& Do(const Event& event) {
    last = Step(state, event, Instant{});
    for (const std::string& violation : FindViolations(state)) ADD_FAILURE() << violation;
    return *this;
  }

  Host& Start() { return Do(AgentStarted{}); }
  Host& Connect() {
    Do(CoordinatorConnected{});
    return Do(CoordinatorWelcomed{.heartbeat_interval = absl::Seconds(1)});
  }
  Host& Disconnect() { return Do(CoordinatorDisconnected{}); }
  // The ranks of StartOrder(generation), as far as ready.
  Host& Run(int64_t generation, std::vector<RankOrder> ranks = {{.rank = 0, .device = 0}}) {
    Do(StartOrder(generation, ranks));
    for (const RankOrder& rank : ranks) {
      Do(ShimConnected{Generation(generation), rank.rank});
      Say(generation, rank.rank, contract::Started{.pid = 100 + rank.rank});
      Say(generation, rank.rank, contract::Ready{});
    }
    return *this;
  }
  Host& Say(int64_t generation, int rank, contract::Message message) {
    return Do(ShimMessage{Generation(generation), rank, std::move(message)});
  }
  Host& Exit(int64_t generation, int rank, ExitRecord exit = {}) {
    return Do(RankExited{Generation(generation), rank, std::move(exit)});
  }
  // Fires the timers with this purpose that were armed so far.
  Host& Fire(Timer::Purpose purpose) {
    std::vector<int64_t> due;
    for (const auto& [number, timer] : state.timers) {
      if (timer.purpose == purpose) due.push_back(number);
    }
    std::vector<Command> all;
    for (int64_t number : due) {
      Do(TimerFired{number});
      all.insert(all.end(), last.begin(), last.end());
    }
    last = std::move(all);
    return *this;
  }
  // Everything sent until now has arrived.
  Host& ConfirmAll() { return Do(HeartbeatAnswered{state.next_heartbeat - 1}); }

  Host& Crash() {
    State stored;
    stored.fences = state.fences;
    stored.outbox = state.outbox;
    stored.devices = state.devices;
    stored.standbys_wanted = state.standbys_wanted;
    state = std::move(stored);
    return *this;
  }

  template <typename T>
  std::vector<T> Last() const {
    std::vector<T> out;
    for (const Command& command : last) {
      if (const T* wanted = std::get_if<T>(&command)) out.push_back(*wanted);
    }
    return out;
  }
  template <typename T>
  std::vector<T> Sent() const {
    std::vector<T> out;
    for (const SendToCoordinator& command : Last<SendToCoordinator>()) {
      if (const T* wanted = std::get_if<T>(&command.message)) out.push_back(*wanted);
    }
    return out;
  }
  template <typename T>
  std::vector<T> ToShims() const {
    std::vector<T> out;
    for (const SendToShim& command : Last<SendToShim>()) {
      if (const T* wanted = std::get_if<T>(&command.message)) out.push_back(*wanted);
    }
    return out;
  }

  State state;
  std::vector<Command> last;
};

}  // namespace llmctl::agent
