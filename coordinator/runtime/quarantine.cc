#include "coordinator/runtime/quarantine.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

#include "common/base/status.h"
#include "common/observe/log.h"
#include "coordinator/core/entity.h"
#include "coordinator/core/quarantine.h"
#include "coordinator/store/record_job.h"

namespace llmctl::runtime {
namespace {

// Two crashes that are further apart than this do not make a pattern.
constexpr absl::Duration kCrashMemory = absl::Hours(24);

std::string Describe(const store::CrashRecord& crash) {
  const char* doing = crash.stage == Focus::Stage::kLoad ? "reading" : "handling";
  return absl::StrCat(doing, " it has crashed the coordinator ", crash.count, " times, at ",
                      absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", crash.last_time, absl::UTCTimeZone()), " last");
}

// The job of "job j-17".
std::optional<JobId> JobOf(absl::string_view entity) {
  if (!absl::ConsumePrefix(&entity, absl::StrCat(core::kJobEntity, " "))) return std::nullopt;
  return JobId(std::string(entity));
}

void PutJob(Job& job, JobEventRecord event, std::vector<store::Change>& out) {
  Log(LogLevel::kError, "job-quarantined", {{"job", job.id.value()}, {"reason", job.reason}});
  out.push_back(store::PutJob{std::make_shared<const Job>(job)});
  out.push_back(store::AppendEvent{job.id, std::move(event)});
}

void Apply(const store::CrashRecord& crash, core::State& state, Instant now, std::vector<store::Change>& out) {
  std::optional<JobId> id = JobOf(crash.entity);
  auto found = id.has_value() ? state.jobs.find(*id) : state.jobs.end();
  if (found == state.jobs.end()) return;
  Job& job = found->second;
  bool given_up = job.quarantined && IsTerminal(job.phase) && !job.attempt.has_value();
  if (crash.count >= 2 * store::kCrashesMax && !given_up) {
    out.push_back(store::PutDamaged{{crash.entity, store::EncodeJob(job), Describe(crash)}});
    PutJob(job, core::BuryJob(job, Describe(crash), now), out);
  } else if (!job.quarantined && !IsTerminal(job.phase)) {
    PutJob(job, core::HoldJob(job, Describe(crash), now), out);
  }
}

}  // namespace

absl::StatusOr<std::vector<store::CrashRecord>> CountCrash(CrashMarker* marker, store::Store& store, int64_t term,
                                                           Instant now) {
  LLM_ASSIGN_OR_RETURN(std::vector<store::CrashRecord> crashes, store.ReadCrashes());
  std::vector<store::Change> changes;
  std::erase_if(crashes, [&](const store::CrashRecord& crash) {
    bool old = crash.count < store::kCrashesMax && now.wall - crash.last_time > kCrashMemory;
    if (old) changes.push_back(store::EraseCrash{crash.entity});
    return old;
  });
  std::optional<CrashMarker::Left> left = marker == nullptr ? std::nullopt : marker->left();
  if (left.has_value()) {
    auto it = std::find_if(crashes.begin(), crashes.end(),
                           [&](const store::CrashRecord& crash) { return crash.entity == left->entity; });
    if (it == crashes.end()) it = crashes.insert(it, store::CrashRecord{.entity = left->entity});
    ++it->count;
    it->stage = left->stage;
    it->last_time = now.wall;
    changes.push_back(store::PutCrash{*it});
    Log(LogLevel::kError, "coordinator-crashed-before", {{"entity", it->entity}, {"crashes", it->count}});
  }
  if (!changes.empty()) LLM_RETURN_IF_ERROR(store.Commit(term, changes));
  // Durable: a crash from here on is another one.
  if (marker != nullptr) marker->Forget();
  return crashes;
}

std::vector<store::Change> ApplyQuarantine(std::vector<store::CrashRecord>& crashes,
                                           const std::vector<store::DamagedRecord>& damaged, core::State& state,
                                           Instant now) {
  std::vector<store::Change> changes;
  for (const store::DamagedRecord& record : damaged) {
    Log(LogLevel::kError, "record-damaged", {{"entity", record.entity}, {"reason", record.reason}});
    changes.push_back(store::PutDamaged{record});
    // The stand-in takes its place, and is not to be blamed for it.
    changes.push_back(store::EraseCrash{record.entity});
    std::erase_if(crashes, [&](const store::CrashRecord& crash) { return crash.entity == record.entity; });
    if (std::optional<JobId> id = JobOf(record.entity); id.has_value()) {
      changes.push_back(store::PutJob{std::make_shared<const Job>(state.jobs.at(*id))});
    } else {
      NodeId node(std::string(absl::StripPrefix(record.entity, absl::StrCat(core::kNodeEntity, " "))));
      changes.push_back(store::PutNode{std::make_shared<const Node>(state.nodes.at(node))});
    }
  }
  for (const store::CrashRecord& crash : crashes) {
    if (crash.count >= store::kCrashesMax) Apply(crash, state, now, changes);
  }
  if (!changes.empty()) {
    ++state.counters.revision;
    changes.push_back(store::PutCounters{{state.counters.next_job, state.counters.revision}});
  }
  return changes;
}

Quarantine::Quarantine(const Records& records) {
  for (const store::CrashRecord& crash : records.crashes) {
    if (crash.count >= store::kCrashesMax) entries_[crash.entity] = {crash, Describe(crash)};
  }
  for (const store::DamagedRecord& record : records.damaged) {
    Entry& entry = entries_[record.entity];
    entry.crash.entity = record.entity;
    entry.reason = absl::StrCat("its stored record cannot be read: ", record.reason);
  }
}

absl::Status Quarantine::Check(absl::string_view kind, absl::string_view id) const {
  MutexLock lock(mutex_);
  auto it = entries_.find(absl::StrCat(kind, " ", id));
  if (it == entries_.end() || it->second.crash.count < store::kCrashesMax) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(kind, " ", id, " is quarantined: ", it->second.reason,
                                                    "; `llmctl admin release '", kind, " ", id,
                                                    "'` gives it another chance"));
}

bool Quarantine::Contains(const std::string& entity) const {
  MutexLock lock(mutex_);
  return entries_.contains(entity);
}

std::vector<Quarantine::Entry> Quarantine::List() const {
  MutexLock lock(mutex_);
  std::vector<Entry> out;
  for (const auto& [entity, entry] : entries_) out.push_back(entry);
  return out;
}

void Quarantine::Release(const std::string& entity) {
  MutexLock lock(mutex_);
  entries_.erase(entity);
}

}  // namespace llmctl::runtime
