#include "simulator/simulation.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace llmctl::simulator {

Simulation::Simulation(uint64_t seed, Mutant mutant, bool print_trace)
    : mutant_(mutant), print_trace_(print_trace), dice_(seed) {}

void Simulation::After(absl::Duration delay, Action action) {
  uint32_t slot = 0;
  if (free_slots_.empty()) {
    slot = static_cast<uint32_t>(held_.size());
    held_.push_back(std::move(action));
  } else {
    slot = free_slots_.back();
    free_slots_.pop_back();
    held_[slot] = std::move(action);
  }
  agenda_.push_back({now_ + absl::ToInt64Nanoseconds(delay), next_number_++, slot});
  std::push_heap(agenda_.begin(), agenda_.end(), Later());
}

bool Simulation::RunNext() {
  if (failed() || agenda_.empty()) return false;
  std::pop_heap(agenda_.begin(), agenda_.end(), Later());
  Entry next = agenda_.back();
  agenda_.pop_back();
  now_ = next.at;
  ++actions_;
  Action& action = held_[next.slot];
  action();
  action = nullptr;
  free_slots_.push_back(next.slot);
  return true;
}

void Simulation::Print(const std::string& line) const { absl::FPrintF(stdout, "%12.6f %s\n", now_ * 1e-9, line); }

void Simulation::Violation(const std::string& text) {
  Trace({-1}, [&] { return absl::StrCat("VIOLATION ", text); });
  if (violation_.empty()) violation_ = text;
}

int Simulation::FaultKinds() const {
  int kinds = 0;
  for (size_t i = 0; i < kProbes; ++i) {
    kinds += probes_[i] > 0 && KindOf(static_cast<Probe>(i)) == ProbeKind::kFault;
  }
  return kinds;
}

}  // namespace llmctl::simulator
