#include "coordinator/runtime/metrics.h"

#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/metric_family.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

namespace llmctl::runtime {
namespace {

constexpr absl::Duration kSeriesAfterEnd = absl::Minutes(5);

// From half a millisecond (a fast disk's fsync) to ten seconds (a failing one).
const std::vector<double> kLatencyBuckets = {0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1,
                                             0.2,    0.5,   1,     2,     5,    10};

prometheus::Histogram& AddHistogram(prometheus::Registry& registry, const char* name, const char* help) {
  return prometheus::BuildHistogram().Name(name).Help(help).Register(registry).Add({}, kLatencyBuckets);
}

prometheus::Counter& AddCounter(prometheus::Registry& registry, const char* name, const char* help) {
  return prometheus::BuildCounter().Name(name).Help(help).Register(registry).Add({});
}

// A family of gauges made for one scrape.
class GaugeFamily {
 public:
  GaugeFamily(const char* name, const char* help) {
    family_.name = name;
    family_.help = help;
    family_.type = prometheus::MetricType::Gauge;
  }
  void Add(std::vector<std::pair<std::string, std::string>> labels, double value) {
    prometheus::ClientMetric& metric = family_.metric.emplace_back();
    for (auto& [name, text] : labels) metric.label.push_back({std::move(name), std::move(text)});
    metric.gauge.value = value;
  }
  void MoveTo(std::vector<prometheus::MetricFamily>& out) {
    if (!family_.metric.empty()) out.push_back(std::move(family_));
  }

 private:
  prometheus::MetricFamily family_;
};

void AddJobPhases(const Snapshot& snapshot, std::vector<prometheus::MetricFamily>& out) {
  std::map<JobPhase, int64_t> counts;
  // Phases without jobs too, so that a series does not come and go.
  for (int i = 0; i <= static_cast<int>(JobPhase::kCancelled); ++i) counts[static_cast<JobPhase>(i)] = 0;
  snapshot.VisitNewestFirst(0, [&](const JobView& view) {
    ++counts[view.job->phase];
    return true;
  });
  GaugeFamily jobs("llm_jobs", "Jobs by phase");
  for (const auto& [phase, count] : counts) jobs.Add({{"phase", JobPhaseName(phase)}}, static_cast<double>(count));
  jobs.MoveTo(out);
}

void AddNodes(const Snapshot& snapshot, std::vector<prometheus::MetricFamily>& out) {
  GaugeFamily states("llm_node_state", "1 for the state that the host is in");
  GaugeFamily devices("llm_node_devices", "Devices of the host");
  GaugeFamily service("llm_node_service", "1 for what operators let the host do");
  GaugeFamily trust("llm_node_trust", "1 for what the ledger of failures thinks of the host");
  for (const auto& [id, node] : snapshot.nodes()) {
    bool ready = node->state == NodeState::kReady;
    states.Add({{"node", id.value()}, {"state", "ready"}}, ready ? 1 : 0);
    states.Add({{"node", id.value()}, {"state", "lost"}}, ready ? 0 : 1);
    devices.Add({{"node", id.value()}}, static_cast<double>(node->devices.size()));
    for (NodeService s : kNodeServices) {
      service.Add({{"node", id.value()}, {"state", NodeServiceName(s)}}, node->standing.service == s);
    }
    for (NodeTrust t : kNodeTrusts) {
      trust.Add({{"node", id.value()}, {"state", NodeTrustName(t)}}, node->standing.trust == t);
    }
  }
  for (GaugeFamily* family : {&states, &devices, &service, &trust}) family->MoveTo(out);
}

void AddLiveJobs(const Metrics::Sources& sources, absl::Time now, int jobs_max,
                 std::vector<prometheus::MetricFamily>& out) {
  GaugeFamily info("llm_job_info", "The job's attempt; its name and project as labels");
  GaugeFamily step("llm_job_step", "Step that the job has reached");
  GaugeFamily loss("llm_job_loss", "Training loss of the newest step, nats");
  GaugeFamily validation("llm_job_validation_loss", "Newest validation loss, nats");
  GaugeFamily tokens("llm_job_tokens_per_second", "Training throughput");
  GaugeFamily skew("llm_rank_step_skew_ratio", "Work per step of the slowest rank over the median of the others");
  int shown = 0, left_out = 0;
  sources.snapshot.VisitNewestFirst(0, [&](const JobView& view) {
    const Job& job = *view.job;
    if (IsTerminal(job.phase) && now - job.end_time > kSeriesAfterEnd) return true;
    if (shown == jobs_max) {
      ++left_out;
      return true;
    }
    ++shown;
    const std::string& id = job.id.value();
    info.Add({{"job", id}, {"name", job.name}, {"project", job.project}}, static_cast<double>(job.last_attempt));
    if (std::optional<Progress> newest = sources.progress.Newest(job.id)) {
      step.Add({{"job", id}}, static_cast<double>(newest->step));
      loss.Add({{"job", id}}, newest->loss);
      tokens.Add({{"job", id}}, newest->tokens_per_second);
      if (!std::isnan(newest->validation_loss)) validation.Add({{"job", id}}, newest->validation_loss);
    }
    if (double ratio = sources.ranks.Skew(job.id); ratio > 0) skew.Add({{"job", id}}, ratio);
    return true;
  });
  for (GaugeFamily* family : {&info, &step, &loss, &validation, &tokens, &skew}) family->MoveTo(out);
  GaugeFamily overflow("llm_job_series_left_out", "Jobs without series of their own because there are too many");
  overflow.Add({}, left_out);
  overflow.MoveTo(out);
}

}  // namespace

Metrics::Metrics(const Options& options)
    : options_(options),
      registry_(std::make_unique<prometheus::Registry>()),
      commit_seconds_(AddHistogram(*registry_, "llm_store_commit_seconds", "Time of a commit of the store")),
      commit_failures_(AddCounter(*registry_, "llm_store_commit_failures_total", "Commits that failed")),
      cycle_seconds_(AddHistogram(*registry_, "llm_sched_cycle_seconds", "Time to make a placement plan")),
      stalls_(AddCounter(*registry_, "llm_coordinator_stalls_total", "Times the coordinator itself was held up")),
      hangs_(AddCounter(*registry_, "llm_job_hangs_total", "Jobs found to hang")),
      leases_expired_(AddCounter(*registry_, "llm_node_leases_expired_total", "Leases of hosts that ran out")) {}

Metrics::~Metrics() = default;

void Metrics::ObserveCommit(absl::Duration took, bool ok) {
  commit_seconds_.Observe(absl::ToDoubleSeconds(took));
  if (!ok) commit_failures_.Increment();
}

void Metrics::ObservePlan(absl::Duration took) { cycle_seconds_.Observe(absl::ToDoubleSeconds(took)); }
void Metrics::CountStall() { stalls_.Increment(); }
void Metrics::CountHang() { hangs_.Increment(); }
void Metrics::CountLeaseExpired() { leases_expired_.Increment(); }

std::string Metrics::Render(const Sources& sources, absl::Time now) const {
  std::vector<prometheus::MetricFamily> families = registry_->Collect();
  GaugeFamily build("llm_build_info", "1; the program's version as a label");
  build.Add({{"component", "coordinator"}, {"version", options_.version}}, 1);
  build.MoveTo(families);
  GaugeFamily term("llm_leader_term", "Term of this coordinator");
  term.Add({}, static_cast<double>(options_.term));
  term.MoveTo(families);
  GaugeFamily apart("llm_coordinator_quarantined", "Entities kept apart because they crashed it or cannot be read");
  apart.Add({}, static_cast<double>(sources.quarantined));
  apart.MoveTo(families);
  GaugeFamily refusing("llm_store_refusing", "1 while the store cannot be written and users' changes are refused");
  refusing.Add({}, !sources.takes_changes);
  refusing.MoveTo(families);
  AddJobPhases(sources.snapshot, families);
  AddNodes(sources.snapshot, families);
  AddLiveJobs(sources, now, options_.job_series_max, families);
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace llmctl::runtime
