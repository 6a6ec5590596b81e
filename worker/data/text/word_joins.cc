#include "worker/data/text/word_joins.h"

#include <algorithm>

namespace llmctl::data {

WordJoins::WordJoins(const WordSplitter& splitter) : join_of_(1, kNone) {
  for (size_t join = 0; join < splitter.joins().size(); ++join) {
    const WordSplitter::Join& rule = splitter.joins()[join];
    if (rule.from.size() < 2) continue;
    int state = 0;
    for (const std::string& word : rule.from) {
      int part = part_of_.try_emplace(word, part_of_.size() + 1).first->second;
      auto [next, is_new] = next_.try_emplace({state, part}, join_of_.size());
      if (is_new) join_of_.push_back(kNone);
      state = next->second;
    }
    join_of_[state] = join;
  }
  parts_ = part_of_.size() + 1;
  pairs_.resize(parts_ * parts_);
  for (const auto& [key, state] : next_) {
    if (key.first != 0) continue;
    for (int part = 1; part < parts_; ++part) {
      if (next_.contains({state, part})) pairs_[key.second * parts_ + part] = true;
    }
  }
}

int WordJoins::PartOf(absl::string_view word) const {
  auto at = part_of_.find(word);
  return at == part_of_.end() ? 0 : at->second;
}

void WordJoins::AddAllFrom(absl::Span<const int> parts, int first, std::vector<Place>& places) const {
  int state = 0;
  for (int at = first; at < static_cast<int>(parts.size()); ++at) {
    auto next = next_.find({state, parts[at]});
    if (next == next_.end()) return;
    state = next->second;
    if (join_of_[state] != kNone) places.push_back({first, at - first + 1, join_of_[state]});
  }
}

std::vector<WordJoins::Place> WordJoins::Find(absl::Span<const int> parts, const std::vector<bool>& glued) const {
  std::vector<Place> places;
  for (int first = 0; first < static_cast<int>(parts.size()); ++first) AddAllFrom(parts, first, places);
  std::sort(places.begin(), places.end(), [](const Place& a, const Place& b) {
    return a.count != b.count ? a.count > b.count : a.first < b.first;
  });
  std::vector<bool> seen(parts.size(), false);
  std::vector<Place> chosen;
  for (const Place& place : places) {
    int last = place.first + place.count - 1;
    bool free = !seen[place.first] && !seen[last];
    bool whole = std::all_of(glued.begin() + place.first + 1, glued.begin() + last + 1, [](bool g) { return g; });
    if (free && whole) chosen.push_back(place);
    std::fill(seen.begin() + place.first, seen.begin() + last + 1, true);
  }
  std::sort(chosen.begin(), chosen.end(), [](const Place& a, const Place& b) { return a.first < b.first; });
  return chosen;
}

}  // namespace llmctl::data
