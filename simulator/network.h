// Links between hosts and coordinators: ordered while they last, delayed, cut, silent, and sometimes repeating.
//
// A cut link loses what is under way on it. A blocked direction keeps what is sent (as TCP does) until it is open
// again, if the link lives that long; neither side is told. Links of one host are independent of each other, so an
// old one may deliver after a newer one. A repeated message may come behind later ones: what is sent is idempotent.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <vector>

#include "coordinator/model/node.h"
#include "simulator/simulation.h"
#include "worker/agent/core/event.h"
#include "worker/agent/core/link.h"

namespace llmctl::simulator {

class Network {
 public:
  // Who is connected by a link, since it was opened.
  struct Ends {
    int host = 0;
    int64_t agent = 0;    // number of the agent's process on its host
    int coordinator = 0;  // which of the two
    Node node;            // what its Hello says of the machine
  };
  struct Receivers {
    std::function<void(int64_t link, const Ends&, const agent::AgentMessage&)> at_coordinator;
    std::function<void(int64_t link, const Ends&, const agent::Event&)> at_agent;
    std::function<void(int64_t link, const Ends&)> closed_at_coordinator;
    std::function<void(int64_t link, const Ends&)> closed_at_agent;
  };

  Network(Simulation& sim, int hosts) : sim_(sim), blocked_(hosts), newest_heard_(hosts) {}
  void Connect(Receivers receivers) { receivers_ = std::move(receivers); }

  int64_t Open(Ends ends);
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
  void CutCoordinator(int coordinator);
  void set_repeats(double probability) { repeats_ = probability; }
  // What is sent to the coordinator on this link from now on takes at least so long.
  void Hold(int64_t link, absl::Duration length);
  // The share of messages that take up to `slowest`.
  void SetSlow(double share, absl::Duration slowest) {
    slow_share_ = share;
    slowest_ = slowest;
  }
  void SetUsualSpeed() { SetSlow(kSlowShare, kSlowest); }
  // As when the simulation began.
  void Heal();

 private:
  using Delivery = Simulation::Action;
  struct Direction {
    absl::Duration last = absl::ZeroDuration();
    int under_way = 0;
    std::deque<Delivery> held;
  };
  struct Link {
    Ends ends;
    bool open_at_agent = true;
    bool open_at_coordinator = true;
    Direction up, down;
  };
  struct Blocked {
    bool up = false;
    bool down = false;
  };

  // Where messages go, by their type.
  static constexpr bool IsUp(const agent::AgentMessage&) { return true; }
  static constexpr bool IsUp(const agent::Event&) { return false; }
  Direction& DirectionOf(Link& link, bool up) { return up ? link.up : link.down; }
  bool IsBlocked(const Link& link, bool up) const {
    const Blocked& blocked = blocked_[link.ends.host];
    return up ? blocked.up : blocked.down;
  }

  absl::Duration Delay();
  // When what is sent now arrives, behind all that was sent before.
  absl::Duration DelayInOrder(Direction& direction);
  template <typename Message>
  void SendMessage(int64_t id, Link& link, Message&& message);
  template <typename Message>
  void Repeat(int64_t id, Link& link, const Message& message);
  void SendClose(int64_t id, Link& link, bool up, Delivery close);
  // Takes `content` along if it has to wait.
  template <typename Content>
  void Arrive(int64_t id, bool up, Content& content);
  void Deliver(int64_t id, const agent::AgentMessage& message);
  void Deliver(int64_t id, const agent::Event& message);
  void Deliver(int64_t, Delivery& delivery) { delivery(); }
  void Flush(int host, bool up);
  void Drain(int64_t link, bool up);
  template <typename Which>
  void CutWhere(Which which);

  Simulation& sim_;
  Receivers receivers_;
  std::map<int64_t, Link> links_;
  std::vector<Blocked> blocked_;
  std::vector<int64_t> newest_heard_;  // by host: the newest link that a coordinator has heard
  int64_t next_link_ = 1;
  double repeats_ = 0;
  double slow_share_ = kSlowShare;
  absl::Duration slowest_ = kSlowest;
  // A little of it always, so that messages of different links overtake each other.
  static constexpr double kSlowShare = 0.02;
  static constexpr absl::Duration kSlowest = absl::Seconds(2);
};

}  // namespace llmctl::simulator
