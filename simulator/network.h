// Links between hosts and the coordinator: ordered while they last, delayed, cut, silent, and sometimes repeating.
//
// A cut link loses what is under way on it. A blocked direction keeps what is sent (as TCP does) until it is open
// again, if the link lives that long; neither side is told.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <vector>

#include "simulator/simulation.h"
#include "worker/agent/core/event.h"
#include "worker/agent/core/link.h"

namespace llmctl::simulator {

class Network {
 public:
  struct Ends {
    std::function<void(int64_t link, int host, const agent::AgentMessage&)> at_coordinator;
    std::function<void(int64_t link, int host, const agent::Event&)> at_agent;
    std::function<void(int64_t link, int host)> closed_at_coordinator;
    std::function<void(int64_t link, int host)> closed_at_agent;
  };

  Network(Simulation& sim, int hosts);
  void Connect(Ends ends) { ends_ = std::move(ends); }

  int64_t Open(int host);
  void ToCoordinator(int64_t link, agent::AgentMessage message);
  void ToAgent(int64_t link, agent::Event message);
  // The other end learns of it unless its direction is blocked.
  void CloseAtAgent(int64_t link);
  void CloseAtCoordinator(int64_t link);

  // ---- faults ----
  void Block(int host, bool towards_coordinator, bool towards_agent);
  void Unblock(int host);
  bool Reachable(int host) const { return !blocked_[host].up && !blocked_[host].down; }
  void Cut(int host);
  void CutAll();
  void set_repeats(double probability) { repeats_ = probability; }

 private:
  struct Direction {
    absl::Duration last = absl::ZeroDuration();
    std::deque<std::function<void()>> held;
  };
  struct Link {
    int host = 0;
    bool open_at_agent = true;
    bool open_at_coordinator = true;
    Direction up, down;
  };
  struct Blocked {
    bool up = false;
    bool down = false;
  };

  void Send(int64_t link, bool up, std::function<void()> deliver);
  void Arrive(int64_t link, bool up, std::function<void()> deliver);
  void Flush(int host, bool up);
  void Drain(int64_t link, bool up);

  Simulation& sim_;
  Ends ends_;
  std::map<int64_t, Link> links_;
  std::vector<Blocked> blocked_;
  int64_t next_link_ = 1;
  double repeats_ = 0;
};

}  // namespace llmctl::simulator
