#include "worker/agent/rpc/rank_mapping.h"

#include <algorithm>

#include "llmctl/v1/worker_link.pb.h"

namespace llmctl::agent {
namespace {

double Longest(const contract::PhaseRecord& record, contract::Activity activity) {
  return absl::ToDoubleSeconds(absl::Nanoseconds(record.longest_nanoseconds[static_cast<size_t>(activity)]));
}

}  // namespace

void Fill(const PulseSource& source, absl::Duration now, v1::RankPulse* out) {
  const contract::PhaseRecord& record = source.record;
  auto since = [&](int64_t nanoseconds) {
    return std::max(0.0, absl::ToDoubleSeconds(now - absl::Nanoseconds(nanoseconds)));
  };
  out->mutable_generation()->set_job(source.generation.job.value());
  out->mutable_generation()->set_attempt(source.generation.attempt);
  out->mutable_generation()->set_generation(source.generation.generation);
  out->set_rank(source.rank);
  out->set_activity(contract::ActivityName(record.activity));
  out->set_phase(contract::PhaseName(record.phase));
  out->set_where(contract::PhaseText(record.phase));
  out->set_activity_seconds(since(record.activity_nanoseconds));
  out->set_phase_seconds(since(record.phase_nanoseconds));
  out->set_step(record.step);
  out->set_steps_here(record.steps_here);
  out->set_step_seconds(since(record.step_nanoseconds));
  out->set_busy_seconds(absl::ToDoubleSeconds(source.busy));
  out->set_longest_validation_seconds(Longest(record, contract::Activity::kValidation));
  out->set_longest_checkpoint_seconds(Longest(record, contract::Activity::kCheckpoint));
}

void Fill(const diagnosis::RankView& view, v1::RankView* out) {
  out->set_rank(view.rank);
  out->set_pid(view.pid);
  out->set_process(view.process);
  out->set_activity(view.activity);
  out->set_phase(view.phase);
  out->set_where(view.where);
  out->set_phase_seconds(view.phase_seconds);
  out->set_step(view.step);
  out->set_step_seconds(view.step_seconds);
  out->set_process_seconds(view.process_seconds);
  for (const diagnosis::CollectivePosition& position : view.collectives) {
    v1::CollectivePosition* to = out->add_collectives();
    to->set_group(position.group);
    to->set_number(position.number);
    to->set_operation(position.operation);
    to->set_site(position.site);
    to->set_count(position.count);
    to->set_state(position.state);
    to->set_seconds(position.seconds);
  }
  out->set_exit(view.exit);
}

}  // namespace llmctl::agent
