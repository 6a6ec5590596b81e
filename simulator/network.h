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
  // Null when the link is gone.
  const Ends* Find(int64_t link) const;
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

  absl::Duration Delay();
  void Send(int64_t id, Link& link, bool up, Delivery delivery);
  void SendBehind(int64_t id, bool up, Delivery delivery);
  void Arrive(int64_t link, bool up, Delivery delivery);
  void Flush(int host, bool up);
  void Drain(int64_t link, bool up);
  Delivery DeliveryUp(int64_t id, agent::AgentMessage message);
  Delivery DeliveryDown(int64_t id, agent::Event message);
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
