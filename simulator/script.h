// What befalls a world, and when: a list of intrusions, each either a fault or a deed of a user, numbered from 0.
//
// Each seed takes some of the kinds and a pace, so that rare mixtures occur. An intrusion comes after a while, or lies
// in wait for an event of the core and comes right behind it: the worst moment. Everything about the n-th follows from
// the seed and n alone, so any can be left out and the others stay what they were: that is how a failure is shrunk.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <vector>

#include "simulator/faults.h"
#include "simulator/occasion.h"
#include "simulator/simulation.h"
#include "simulator/users.h"

namespace llmctl::simulator {

class Script {
 public:
  struct Options {
    uint64_t seed = 1;
    std::set<int> left_out;
    int end = 0;  // so many intrusions; 0: as many as it takes
  };
  // `enough`: whether the world has seen what a schedule must have.
  Script(Simulation& sim, Faults& faults, Users& users, Options options);
  Script(const Script&) = delete;
  Script& operator=(const Script&) = delete;

  void Begin(std::function<bool()> enough);
  void OnEvent(const core::Event& event);
  bool over() const { return over_; }
  int count() const { return next_; }

 private:
  using Intrusion = std::function<void(Dice&, const Occasion&)>;
  struct Waiting {
    int number = 0;
    size_t event = 0;  // index of its kind
    Dice dice;
  };

  void ChooseKinds(Faults& faults, Users& users);
  void Next();
  void Come(int number, Dice dice);
  void Do(int number, Dice& dice, const Occasion& occasion);
  bool LeftOut(int number) const { return options_.left_out.contains(number); }

  Simulation& sim_;
  const Options options_;
  Dice dice_;  // for the choice of kinds and the pace
  std::function<bool()> enough_;
  std::vector<Intrusion> faults_;
  std::vector<Intrusion> deeds_;
  Intrusion submit_;
  absl::Duration spacing_;
  double deed_share_ = 0;
  double worst_moment_share_ = 0;
  int planned_ = 0;
  int next_ = 0;
  bool over_ = false;
  std::vector<Waiting> waiting_;
};

}  // namespace llmctl::simulator
