#include "coordinator/store/sqlite/statements.h"

#include "coordinator/store/record_job.h"
#include "coordinator/store/record_node.h"

namespace llmctl::store {

using soci::into;
using soci::use;

Statements::Statements(soci::session& session)
    : session_(session),
      read_term_((session.prepare << "SELECT value FROM counter WHERE name = 'term'", into(value_))),
      put_job_((session.prepare << "INSERT INTO job (id, project, name, phase, record) "
                                   "VALUES (:id, :project, :name, :phase, :record) "
                                   "ON CONFLICT (id) DO UPDATE SET phase = excluded.phase, record = excluded.record",
                use(id_), use(project_), use(name_), use(phase_), use(record_))),
      put_submission_((session.prepare << "INSERT INTO submission (project, idempotency_key, job) "
                                          "VALUES (:project, :key, :job) "
                                          "ON CONFLICT (project, idempotency_key) DO UPDATE SET job = excluded.job",
                       use(project_), use(key_), use(id_))),
      erase_job_((session.prepare << "DELETE FROM job WHERE id = :id", use(id_))),
      erase_submission_((session.prepare << "DELETE FROM submission WHERE job = :id", use(id_))),
      erase_events_((session.prepare << "DELETE FROM job_event WHERE job = :id", use(id_))),
      erase_damaged_((session.prepare << "DELETE FROM damaged WHERE entity = 'job ' || :id", use(id_))),
      put_node_((session.prepare << "INSERT INTO node (id, state, record) VALUES (:id, :state, :record) "
                                    "ON CONFLICT (id) DO UPDATE SET state = excluded.state, record = excluded.record",
                 use(id_), use(phase_), use(record_))),
      append_event_((session.prepare << "INSERT INTO job_event "
                                        "(job, sequence, time_ns, attempt, generation, kind, text) "
                                        "VALUES (:job, :sequence, :time_ns, :attempt, :generation, :kind, :text) "
                                        "ON CONFLICT (job, sequence) DO UPDATE SET time_ns = excluded.time_ns, "
                                        "attempt = excluded.attempt, generation = excluded.generation, "
                                        "kind = excluded.kind, text = excluded.text",
                     use(id_), use(sequence_), use(time_ns_), use(attempt_), use(generation_), use(kind_),
                     use(text_))),
      put_counter_((session.prepare << "UPDATE counter SET value = :value WHERE name = :name", use(value_),
                    use(name_))) {}

long long Statements::Term() {
  read_term_.execute(true);
  long long term = value_;
  // Reads to the end, so that the cursor does not outlive the transaction.
  while (read_term_.fetch()) {
  }
  return term;
}

void Statements::Apply(const PutJob& change) {
  const Job& job = *change.job;
  id_ = job.id.value();
  project_ = job.project;
  name_ = job.name;
  phase_ = JobPhaseName(job.phase);
  record_ = EncodeJob(job);
  put_job_.execute(true);
  if (!job.idempotency_key.empty()) {
    key_ = job.idempotency_key;
    put_submission_.execute(true);
  }
}

void Statements::Apply(const EraseJob& change) {
  id_ = change.job.value();
  erase_job_.execute(true);
  erase_submission_.execute(true);
  erase_events_.execute(true);
  erase_damaged_.execute(true);
}

void Statements::Apply(const PutNode& change) {
  id_ = change.node->id.value();
  phase_ = change.node->state == NodeState::kReady ? "ready" : "lost";
  record_ = EncodeNode(*change.node);
  put_node_.execute(true);
}

void Statements::Apply(const AppendEvent& change) {
  id_ = change.job.value();
  sequence_ = change.event.sequence;
  time_ns_ = absl::ToUnixNanos(change.event.time);
  attempt_ = change.event.attempt;
  generation_ = change.event.generation;
  kind_ = change.event.kind;
  text_ = change.event.text;
  append_event_.execute(true);
}

void Statements::Apply(const PutCounters& change) {
  SetCounter("next_job", change.counters.next_job);
  SetCounter("revision", change.counters.revision);
}

void Statements::Apply(const PutCrash& change) {
  long long count = change.crash.count, time_ns = absl::ToUnixNanos(change.crash.last_time);
  std::string stage = change.crash.stage == Focus::Stage::kLoad ? "load" : "step";
  session_ << "INSERT INTO crash (entity, count, stage, time_ns) VALUES (:entity, :count, :stage, :time_ns) "
              "ON CONFLICT (entity) DO UPDATE SET count = excluded.count, stage = excluded.stage, "
              "time_ns = excluded.time_ns",
      use(change.crash.entity), use(count), use(stage), use(time_ns);
}

void Statements::Apply(const EraseCrash& change) {
  session_ << "DELETE FROM crash WHERE entity = :entity", use(change.entity);
}

void Statements::Apply(const PutDamaged& change) {
  // The first one kept is the original; a later one would be its stand-in.
  session_ << "INSERT INTO damaged (entity, record, reason) VALUES (:entity, :record, :reason) "
              "ON CONFLICT (entity) DO NOTHING",
      use(change.damaged.entity), use(change.damaged.record), use(change.damaged.reason);
}

void Statements::Apply(const EraseDamaged& change) {
  session_ << "DELETE FROM damaged WHERE entity = :entity", use(change.entity);
}

void Statements::SetCounter(const char* name, long long value) {
  name_ = name;
  value_ = value;
  put_counter_.execute(true);
}

}  // namespace llmctl::store
