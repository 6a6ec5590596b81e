#include "worker/data/perplexity/length_balance.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "common/base/check.h"
#include "common/base/digest.h"

namespace llmctl::data {
namespace {

// 2^64 times a fraction below 1.
uint64_t Scaled(double fraction) {
  const double scaled = std::ldexp(fraction, 64);
  return scaled >= 0x1p64 ? std::numeric_limits<uint64_t>::max() : static_cast<uint64_t>(scaled);
}

LengthRate RateOf(double rate) {
  LengthRate out;
  out.rate = rate;
  out.copies = static_cast<uint32_t>(rate);
  out.more = Scaled(rate - out.copies);
  return out;
}

// Tokens that each bucket gives. `room` is what it could; those with weight share `total` by weight, and what one
// cannot give the others do.
std::vector<double> Pour(double total, const std::vector<double>& room, const std::vector<double>& weights) {
  std::vector<double> given(room.size(), 0);
  std::vector<bool> full(room.size(), false);
  while (true) {
    double left = total, weight = 0;
    for (size_t i = 0; i < room.size(); ++i) full[i] ? left -= room[i] : weight += weights[i];
    if (weight <= 0) return given;
    bool one_more_full = false;
    for (size_t i = 0; i < room.size(); ++i) {
      if (full[i]) continue;
      given[i] = std::max(0.0, left) * weights[i] / weight;
      if (given[i] < room[i] || weights[i] == 0) continue;
      given[i] = room[i];
      full[i] = one_more_full = true;
    }
    if (!one_more_full) return given;
  }
}

}  // namespace

absl::Status LengthBalanceSettings::Validate() const {
  std::vector<std::string> faults;
  for (size_t i = 1; i < edges.size(); ++i) {
    if (edges[i] <= edges[i - 1]) {
      faults.push_back(absl::StrCat("edges: ", edges[i], " comes after ", edges[i - 1], ", expected rising lengths"));
    }
  }
  if (weights.size() != edges.size() + 1) {
    faults.push_back(absl::StrCat("weights: expected ", edges.size() + 1, ", one for each bucket between ",
                                  edges.size(), " edges, found ", weights.size()));
  }
  double sum = 0;
  for (double weight : weights) {
    if (!(std::isfinite(weight) && weight >= 0)) {
      faults.push_back(absl::StrCat("weights: ", weight, ", expected a number from 0 on"));
    }
    sum += weight;
  }
  if (!weights.empty() && !(sum > 0)) faults.push_back("weights: all are 0");
  if (!(repeat_max > 0 && repeat_max <= 1000)) {
    faults.push_back(absl::StrCat("repeat_max is ", repeat_max, ", expected a number above 0, at most 1000"));
  }
  if (tokens_target.has_value() && *tokens_target == 0) faults.push_back("tokens_target is 0");
  if (faults.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("length balancing: ", absl::StrJoin(faults, "; ")));
}

size_t LengthBucketOf(const LengthBalanceSettings& settings, uint64_t document_tokens) {
  return std::upper_bound(settings.edges.begin(), settings.edges.end(), document_tokens) - settings.edges.begin();
}

void LengthHistogram::Add(const LengthBalanceSettings& settings, uint64_t document_tokens) {
  const size_t bucket = LengthBucketOf(settings, document_tokens);
  ++documents[bucket];
  tokens[bucket] += document_tokens;
}

void LengthHistogram::Merge(const LengthHistogram& other) {
  CHECK_EQ(other.tokens.size(), tokens.size()) << "histograms of the same buckets";
  for (size_t i = 0; i < tokens.size(); ++i) {
    documents[i] += other.documents[i];
    tokens[i] += other.tokens[i];
  }
}

absl::StatusOr<LengthPlan> PlanLengths(const LengthHistogram& histogram, const LengthBalanceSettings& settings) {
  if (absl::Status valid = settings.Validate(); !valid.ok()) return valid;
  const size_t buckets = settings.weights.size();
  if (histogram.tokens.size() != buckets) {
    return absl::InvalidArgumentError(absl::StrCat("length balancing: the histogram has ", histogram.tokens.size(),
                                                   " buckets, the settings have ", buckets));
  }
  double weight_sum = 0;
  std::vector<double> weights(buckets, 0), room(buckets, 0);
  LengthPlan plan;
  for (size_t i = 0; i < buckets; ++i) {
    if (settings.weights[i] == 0) continue;
    room[i] = static_cast<double>(histogram.tokens[i]) * settings.repeat_max;
    if (room[i] == 0) {
      plan.short_of.push_back(i);
      continue;
    }
    weights[i] = settings.weights[i];
    weight_sum += weights[i];
  }
  if (weight_sum == 0) {
    return absl::FailedPreconditionError("length balancing: no document has a length to which a weight is given");
  }
  double total = std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < buckets; ++i) {
    weights[i] /= weight_sum;
    if (weights[i] > 0) total = std::min(total, room[i] / weights[i]);
  }
  if (settings.tokens_target.has_value()) total = static_cast<double>(*settings.tokens_target);
  std::vector<double> given = Pour(total, room, weights);
  for (size_t i = 0; i < buckets; ++i) plan.tokens_expected += given[i];
  for (size_t i = 0; i < buckets; ++i) {
    plan.rates.push_back(RateOf(given[i] == 0 ? 0 : given[i] / static_cast<double>(histogram.tokens[i])));
    plan.shares.push_back(given[i] / plan.tokens_expected);
    // A little short by rounding is not short.
    if (weights[i] > 0 && given[i] < weights[i] * total * (1 - 1e-9)) plan.short_of.push_back(i);
  }
  std::sort(plan.short_of.begin(), plan.short_of.end());
  return plan;
}

uint32_t CopiesOf(const LengthPlan& plan, uint64_t key, size_t bucket, absl::string_view id) {
  const LengthRate& rate = plan.rates[bucket];
  return rate.copies + (Fingerprint64(id, key) < rate.more ? 1 : 0);
}

}  // namespace llmctl::data
