#include "worker/data/mix/mix.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"

#include "common/base/status.h"

namespace llmctl::data {
namespace {

double TokensOf(const GroupInfo& group) { return static_cast<double>(group.tokens); }

std::vector<double> Temperature(absl::Span<const GroupInfo> groups, double alpha) {
  std::vector<double> out;
  for (const GroupInfo& group : groups) out.push_back(group.tokens > 0 ? std::pow(TokensOf(group), alpha) : 0);
  return out;
}

// Algorithm 1 of Chung et al. 2023: from the smallest group to the largest, each takes an even part of what is left of
// the budget, or epochs_max of itself.
std::vector<double> UniMax(absl::Span<const GroupInfo> groups, double budget, double epochs_max) {
  std::vector<size_t> order(groups.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return groups[a].tokens < groups[b].tokens; });
  std::vector<double> out(groups.size());
  size_t left = groups.size();
  for (size_t i : order) {
    out[i] = std::min(budget / static_cast<double>(left), TokensOf(groups[i]) * epochs_max);
    budget -= out[i];
    --left;
  }
  return out;
}

bool IsOfSource(const GroupInfo& group, const std::string& source) {
  return group.name.size() > source.size() && group.name.compare(0, source.size(), source) == 0 &&
         group.name[source.size()] == '/';
}

absl::StatusOr<std::vector<double>> Explicit(absl::Span<const GroupInfo> groups,
                                             const std::map<std::string, double>& weights) {
  std::vector<double> out(groups.size());
  std::vector<bool> named(groups.size());
  std::vector<std::string> faults;
  for (size_t i = 0; i < groups.size(); ++i) {
    auto own = weights.find(groups[i].name);
    if (own == weights.end()) continue;
    named[i] = true;
    out[i] = groups[i].tokens > 0 ? own->second : 0;
  }
  for (const auto& [name, weight] : weights) {
    bool used = false;
    double tokens = 0;
    for (size_t i = 0; i < groups.size(); ++i) {
      used |= groups[i].name == name || IsOfSource(groups[i], name);
      if (!named[i] && IsOfSource(groups[i], name)) tokens += TokensOf(groups[i]);
    }
    if (!used) faults.push_back(absl::StrCat("weights.", name, ": there is no such source or group"));
    for (size_t i = 0; i < groups.size(); ++i) {
      if (named[i] || !IsOfSource(groups[i], name)) continue;
      named[i] = true;
      if (tokens > 0) out[i] = weight * TokensOf(groups[i]) / tokens;
    }
  }
  for (size_t i = 0; i < groups.size(); ++i) {
    if (!named[i]) faults.push_back(absl::StrCat("weights: group ", groups[i].name, " has none"));
  }
  if (faults.empty()) return out;
  return absl::InvalidArgumentError(absl::StrJoin(faults, "; "));
}

absl::StatusOr<std::vector<double>> RawWeights(const MixSettings& settings, absl::Span<const GroupInfo> groups) {
  double tokens = 0;
  for (const GroupInfo& group : groups) tokens += TokensOf(group);
  double budget = settings.budget_tokens > 0 ? static_cast<double>(settings.budget_tokens) : tokens;
  switch (settings.method) {
    case MixMethod::kProportional: return Temperature(groups, 1);
    case MixMethod::kTemperature: return Temperature(groups, settings.alpha);
    case MixMethod::kUniMax: return UniMax(groups, budget, settings.epochs_max);
    case MixMethod::kExplicit: return Explicit(groups, settings.weights);
  }
  return absl::InternalError("unknown mix method");
}

}  // namespace

absl::Status MixSettings::Validate() const {
  std::vector<std::string> faults;
  for (const auto& [name, weight] : weights) {
    if (!(weight >= 0 && std::isfinite(weight))) {
      faults.push_back(absl::StrCat("weights.", name, " is ", weight, ", expected a number that is not negative"));
    }
  }
  if (method == MixMethod::kExplicit && weights.empty()) faults.push_back("weights is empty");
  if (method != MixMethod::kExplicit && !weights.empty()) faults.push_back("weights needs method explicit");
  if (!(alpha >= 0 && alpha <= 1)) faults.push_back(absl::StrCat("alpha is ", alpha, ", expected 0 to 1"));
  if (budget_tokens < 0) faults.push_back(absl::StrCat("budget_tokens is ", budget_tokens, ", expected 0 or more"));
  if (!(epochs_max > 0 && std::isfinite(epochs_max))) {
    faults.push_back(absl::StrCat("epochs_max is ", epochs_max, ", expected more than 0"));
  }
  if (faults.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrJoin(faults, "; "));
}

absl::StatusOr<std::vector<double>> MixWeights(const MixSettings& settings, absl::Span<const GroupInfo> groups) {
  LLM_RETURN_IF_ERROR(settings.Validate());
  LLM_ASSIGN_OR_RETURN(std::vector<double> weights, RawWeights(settings, groups));
  double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  if (!(sum > 0)) return absl::InvalidArgumentError("mix: no group has both tokens and a weight");
  for (double& weight : weights) weight /= sum;
  return weights;
}

std::vector<double> Epochs(absl::Span<const double> weights, absl::Span<const GroupInfo> groups,
                           int64_t budget_tokens) {
  std::vector<double> out;
  for (size_t i = 0; i < groups.size(); ++i) {
    double seen = weights[i] * static_cast<double>(budget_tokens);
    out.push_back(groups[i].tokens > 0 ? seen / TokensOf(groups[i]) : 0);
  }
  return out;
}

}  // namespace llmctl::data
