#include "worker/data/shards/group_schedule.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <queue>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "common/base/check.h"

namespace llmctl::data {
namespace {

constexpr int64_t kExactPeriodMax = 4096;
constexpr int64_t kPeriodMax = int64_t{1} << 20;
constexpr size_t kGroupsMax = 1 << 15;
// Decimal fractions are this near to what they stand for.
constexpr double kExactTolerance = 1e-12;

absl::Status Validate(const std::vector<double>& weights) {
  if (weights.size() >= kGroupsMax) {
    return absl::InvalidArgumentError(absl::StrCat(weights.size(), " groups, expected fewer than ", kGroupsMax));
  }
  double sum = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    if (!std::isfinite(weights[i]) || weights[i] < 0) {
      return absl::InvalidArgumentError(absl::StrCat("the weight of group ", i, " is ", weights[i]));
    }
    sum += weights[i];
  }
  if (sum > 0 && std::isfinite(sum)) return absl::OkStatus();
  return absl::InvalidArgumentError("no group has a weight");
}

bool IsExact(const std::vector<double>& shares, int64_t period) {
  return std::all_of(shares.begin(), shares.end(), [period](double share) {
    double turns = share * static_cast<double>(period);
    return std::abs(turns - std::round(turns)) <= kExactTolerance * static_cast<double>(period);
  });
}

// Largest remainders, but no group with a weight goes without a turn.
std::vector<int64_t> Apportion(const std::vector<double>& shares, int64_t period) {
  std::vector<int64_t> turns(shares.size());
  std::vector<std::pair<double, size_t>> remainders;
  int64_t left = period;
  for (size_t i = 0; i < shares.size(); ++i) {
    double exact = shares[i] * static_cast<double>(period);
    turns[i] = shares[i] > 0 ? std::max<int64_t>(1, static_cast<int64_t>(exact)) : 0;
    left -= turns[i];
    if (shares[i] > 0) remainders.emplace_back(static_cast<double>(turns[i]) - exact, i);
  }
  std::sort(remainders.begin(), remainders.end());
  for (size_t i = 0; left > 0; ++i, --left) ++turns[remainders[i % remainders.size()].second];
  // Turns that were given to the lightest are taken from the heaviest.
  for (; left < 0; ++left) --*std::max_element(turns.begin(), turns.end());
  return turns;
}

std::vector<int64_t> TurnsOf(const std::vector<double>& weights) {
  double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  std::vector<double> shares;
  for (double weight : weights) shares.push_back(weight / sum);
  for (int64_t period = 1; period <= kExactPeriodMax; ++period) {
    if (!IsExact(shares, period)) continue;
    std::vector<int64_t> turns;
    for (double share : shares) turns.push_back(std::llround(share * static_cast<double>(period)));
    if (std::accumulate(turns.begin(), turns.end(), int64_t{0}) == period) return turns;
  }
  return Apportion(shares, kPeriodMax);
}

}  // namespace

absl::StatusOr<GroupSchedule> GroupSchedule::Create(const std::vector<double>& weights) {
  absl::Status valid = Validate(weights);
  if (!valid.ok()) return valid;
  GroupSchedule schedule;
  schedule.turns_ = TurnsOf(weights);
  const std::vector<int64_t>& q = schedule.turns_;
  const int64_t period = std::accumulate(q.begin(), q.end(), int64_t{0});
  schedule.slots_.resize(static_cast<size_t>(period));

  using Entry = std::pair<int64_t, int>;  // a slot, a group
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> waiting, ready;  // by release, by deadline
  std::vector<int64_t> had(q.size());
  for (size_t g = 0; g < q.size(); ++g) {
    if (q[g] > 0) waiting.emplace(0, static_cast<int>(g));
  }
  for (int64_t slot = 0; slot < period; ++slot) {
    for (; !waiting.empty() && waiting.top().first <= slot; waiting.pop()) {
      int g = waiting.top().second;
      ready.emplace(((had[g] + 1) * period + q[g] - 1) / q[g], g);
    }
    CHECK(!ready.empty() && ready.top().first > slot) << "slot " << slot << " of " << period;
    int g = ready.top().second;
    ready.pop();
    int64_t ahead = had[g] - slot * q[g] / period;
    schedule.slots_[slot] = static_cast<uint16_t>(g << 1 | ahead);
    ++had[g];
    if (had[g] < q[g]) waiting.emplace(had[g] * period / q[g], g);
  }
  return schedule;
}

GroupSchedule::Turn GroupSchedule::At(int64_t slot) const {
  const int64_t block = slot / period(), at = slot % period();
  const uint16_t packed = slots_[static_cast<size_t>(at)];
  const int group = packed >> 1;
  return {group, block * turns_[group] + at * turns_[group] / period() + (packed & 1)};
}

}  // namespace llmctl::data
