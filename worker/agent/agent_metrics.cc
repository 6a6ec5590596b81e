#include "worker/agent/agent_metrics.h"

#include <cmath>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace llmctl::agent {
namespace {

constexpr absl::Duration kKeepAfterEnd = absl::Minutes(5);

std::string Number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  return absl::StrFormat("%.17g", value);
}

void Describe(std::string& out, absl::string_view name, absl::string_view type, absl::string_view what) {
  absl::StrAppend(&out, "# HELP ", name, " ", what, "\n# TYPE ", name, " ", type, "\n");
}

}  // namespace

void AgentMetrics::Publish(const State& state, absl::Duration now) {
  std::set<JobId> live;
  std::map<RankPhase, int> ranks;
  for (const auto& [id, gang] : state.gangs) {
    for (const auto& [number, rank] : gang.ranks) {
      ++ranks[rank.phase];
      if (rank.phase != RankPhase::kExited) live.insert(id.job);
    }
  }
  MutexLock lock(mutex_);
  connected_ = state.welcomed;
  ranks_ = std::move(ranks);
  standbys_ready_ = 0;
  standby_memory_bytes_ = 0;
  for (const auto& [number, standby] : state.standbys) {
    standbys_ready_ += standby.phase == Standby::Phase::kReady;
    standby_memory_bytes_ += standby.memory_bytes;
  }
  outbox_ = static_cast<int64_t>(state.outbox.size());
  for (auto it = figures_.begin(); it != figures_.end();) {
    std::optional<absl::Duration>& ended_at = it->second.ended_at;
    if (live.contains(it->first)) {
      ended_at.reset();
    } else if (!ended_at.has_value()) {
      ended_at = now;
    }
    bool over = ended_at.has_value() && now - *ended_at >= kKeepAfterEnd;
    it = over ? figures_.erase(it) : std::next(it);
  }
}

void AgentMetrics::RecordProgress(const JobId& job, const contract::Progress& progress) {
  MutexLock lock(mutex_);
  figures_[job].progress = progress;
}

void AgentMetrics::CountPersistFailure() {
  MutexLock lock(mutex_);
  ++persist_failures_;
}

std::string AgentMetrics::Render() const {
  MutexLock lock(mutex_);
  std::string out;
  Describe(out, "llm_agent_connected", "gauge", "Whether the link to the coordinator is up.");
  absl::StrAppend(&out, "llm_agent_connected ", connected_ ? 1 : 0, "\n");
  Describe(out, "llm_agent_ranks", "gauge", "Ranks on this host by phase.");
  for (auto [phase, name] : {std::pair(RankPhase::kStarting, "starting"), std::pair(RankPhase::kRunning, "running"),
                             std::pair(RankPhase::kExited, "exited")}) {
    auto it = ranks_.find(phase);
    absl::StrAppend(&out, "llm_agent_ranks{phase=\"", name, "\"} ", it == ranks_.end() ? 0 : it->second, "\n");
  }
  Describe(out, "llm_agent_standbys", "gauge", "Trainers that wait, loaded, for a job.");
  absl::StrAppend(&out, "llm_agent_standbys ", standbys_ready_, "\n");
  Describe(out, "llm_agent_standby_memory_bytes", "gauge", "Memory that they hold for themselves.");
  absl::StrAppend(&out, "llm_agent_standby_memory_bytes ", standby_memory_bytes_, "\n");
  Describe(out, "llm_agent_outbox", "gauge", "Checkpoint commits that the coordinator has not answered.");
  absl::StrAppend(&out, "llm_agent_outbox ", outbox_, "\n");
  Describe(out, "llm_agent_persist_failures_total", "counter", "Writes to the state directory that failed.");
  absl::StrAppend(&out, "llm_agent_persist_failures_total ", persist_failures_, "\n");

  struct Series {
    const char* name;
    const char* what;
    double (*value)(const contract::Progress&);
  };
  const Series series[] = {
      {"llm_trainer_step", "Steps done.", [](const contract::Progress& p) { return static_cast<double>(p.step); }},
      {"llm_trainer_loss", "Mean loss of the last step, in nats.", [](const contract::Progress& p) { return p.loss; }},
      {"llm_trainer_tokens_per_second", "Tokens per second, all ranks.",
       [](const contract::Progress& p) { return p.tokens_per_second; }}};
  for (const Series& s : series) {
    Describe(out, s.name, "gauge", s.what);
    for (const auto& [job, figures] : figures_) {
      absl::StrAppend(&out, s.name, "{job=\"", job.value(), "\"} ", Number(s.value(figures.progress)), "\n");
    }
  }
  return out;
}

}  // namespace llmctl::agent
