#include "simulator/simulation.h"

#include <cstdio>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "common/base/digest.h"

namespace llmctl::simulator {

Simulation::Simulation(uint64_t seed, Mutant mutant, bool print_trace)
    : mutant_(mutant),
      print_trace_(print_trace),
      rng_(seed),
      now_{absl::ZeroDuration(), absl::FromUnixSeconds(1'700'000'000)} {}

void Simulation::After(absl::Duration delay, std::function<void()> action) {
  agenda_.push({now_.monotonic + delay, next_number_++, std::move(action)});
}

bool Simulation::RunNext() {
  if (failed() || agenda_.empty()) return false;
  // top() is const only to protect the order, which pop() ends anyway.
  Action action = std::move(const_cast<Action&>(agenda_.top()));
  agenda_.pop();
  now_ = now_ + (action.at - now_.monotonic);
  ++actions_;
  action.run();
  return true;
}

void Simulation::Trace(const std::string& line) {
  uint64_t at = static_cast<uint64_t>(absl::ToInt64Nanoseconds(now_.monotonic));
  trace_hash_ = Fingerprint64(line, trace_hash_ ^ at);
  if (print_trace_) absl::FPrintF(stdout, "%12.6f %s\n", absl::ToDoubleSeconds(now_.monotonic), line);
}

void Simulation::Violation(const std::string& text) {
  Trace(absl::StrCat("VIOLATION ", text));
  if (violation_.empty()) violation_ = text;
}

}  // namespace llmctl::simulator
