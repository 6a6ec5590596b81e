#include "simulator/script.h"

#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"

namespace llmctl::simulator {
namespace {

// Jobs that are there from the beginning.
constexpr int kFirstJobs = 3;
constexpr size_t kFaultsChosenLeast = 6;
constexpr int kIntrusionsLeast = 8;
constexpr int kIntrusionsMost = 24;
// A world that has not seen enough by then is reported as one that does not qualify.
constexpr int kIntrusionsBound = 400;
constexpr absl::Duration kPatience = absl::Seconds(15);
// How close behind its event an intrusion comes.
constexpr absl::Duration kBehind = absl::Milliseconds(30);
constexpr size_t kEventKinds = std::variant_size_v<core::Event>;

Dice DiceOf(uint64_t seed, int number) { return Dice(seed * 0x2545f4914f6cdd1dull + static_cast<uint64_t>(number)); }

}  // namespace

Script::Script(Simulation& sim, Faults& faults, Users& users, Options options)
    : sim_(sim), options_(std::move(options)), dice_(DiceOf(options_.seed, -1)) {
  ChooseKinds(faults, users);
}

void Script::ChooseKinds(Faults& faults, Users& users) {
  double share = dice_.Between(0.25, 1.0);
  for (Faults::Fault fault : Faults::All()) {
    if (!dice_.Happens(share)) continue;
    faults_.push_back([&faults, fault](Dice& d, const Occasion& o) { (faults.*fault)(d, o); });
  }
  // Too few for a mixture.
  if (faults_.size() < kFaultsChosenLeast) {
    for (Faults::Fault fault : Faults::All()) {
      faults_.push_back([&faults, fault](Dice& d, const Occasion& o) { (faults.*fault)(d, o); });
    }
  }
  double deed_share = dice_.Between(0.3, 1.0);
  for (Users::Deed deed : Users::Deeds()) {
    if (!dice_.Happens(deed_share)) continue;
    deeds_.push_back([&users, deed](Dice& d, const Occasion& o) { (users.*deed)(d, o); });
  }
  submit_ = [&users](Dice& d, const Occasion& o) { users.SubmitJob(d, o); };
  spacing_ = dice_.Happens(0.2) ? dice_.Between(absl::Milliseconds(300), absl::Seconds(2))
                                : dice_.Between(absl::Seconds(1), absl::Seconds(12));
  deed_share_ = deeds_.empty() ? 0 : dice_.Between(0.1, 0.5);
  worst_moment_share_ = dice_.Between(0.0, 0.8);
  planned_ = kIntrusionsLeast + dice_.Pick(kIntrusionsMost - kIntrusionsLeast);
}

void Script::Begin(std::function<bool()> enough) {
  enough_ = std::move(enough);
  Next();
}

void Script::Next() {
  bool end = options_.end > 0 ? next_ >= options_.end : next_ >= planned_ && (enough_() || next_ >= kIntrusionsBound);
  if (end) {
    over_ = true;
    return;
  }
  int number = next_++;
  Dice dice = DiceOf(options_.seed, number);
  absl::Duration gap = spacing_ * dice.Between(0.1, 1.9);
  // The first jobs come soon: there is nothing to disturb before.
  if (number < kFirstJobs) gap = gap / 5;
  sim_.After(gap, [this, number, dice]() mutable {
    Come(number, dice);
    Next();
  });
}

void Script::Come(int number, Dice dice) {
  if (LeftOut(number)) return;
  if (number < kFirstJobs || !dice.Happens(worst_moment_share_)) return Do(number, dice, {});
  waiting_.push_back({number, static_cast<size_t>(dice.Pick(kEventKinds)), dice});
  // It has waited for long enough.
  sim_.After(kPatience, [this, number] {
    for (size_t i = 0; i < waiting_.size(); ++i) {
      if (waiting_[i].number != number) continue;
      Dice kept = waiting_[i].dice;
      waiting_.erase(waiting_.begin() + i);
      Do(number, kept, {});
      return;
    }
  });
}

void Script::OnEvent(const core::Event& event) {
  for (size_t i = 0; i < waiting_.size();) {
    if (waiting_[i].event != event.index()) {
      ++i;
      continue;
    }
    Waiting ready = waiting_[i];
    waiting_.erase(waiting_.begin() + i);
    sim_.Reached(Probe::kAtTheWorstMoment);
    absl::Duration behind = ready.dice.Between(absl::ZeroDuration(), kBehind);
    sim_.After(behind, [this, number = ready.number, dice = ready.dice, occasion = OccasionOf(event)]() mutable {
      Do(number, dice, occasion);
    });
  }
}

void Script::Do(int number, Dice& dice, const Occasion& occasion) {
  if (over_) return;
  sim_.Trace({'i', number}, [&] { return absl::StrCat("intrusion ", number); });
  if (number < kFirstJobs) return submit_(dice, occasion);
  bool deed = faults_.empty() || dice.Happens(deed_share_);
  const std::vector<Intrusion>& kinds = deed && !deeds_.empty() ? deeds_ : faults_;
  if (kinds.empty()) return submit_(dice, occasion);
  kinds[dice.Pick(static_cast<int>(kinds.size()))](dice, occasion);
}

}  // namespace llmctl::simulator
