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
#include "coordinator/model/stand_in.h"
#include "coordinator/store/record_job.h"
#include "coordinator/store/record_node.h"

namespace llmctl::runtime {
namespace {

// Two crashes that are further apart than this do not make a pattern.
constexpr absl::Duration kCrashMemory = absl::Hours(24);

std::string Describe(const store::CrashRecord& crash) {
  const char* doing = crash.stage == Focus::Stage::kLoad ? "reading" : "handling";
  return absl::StrCat(doing, " it has crashed the coordinator ", crash.count, " times, at ",
                      absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", crash.last_time, absl::UTCTimeZone()), " last");
}

// "j-17" of "job j-17".
std::optional<std::string> IdOf(absl::string_view kind, absl::string_view entity) {
  if (!absl::ConsumePrefix(&entity, absl::StrCat(kind, " "))) return std::nullopt;
  return std::string(entity);
}

void PutJob(Job& job, JobEventRecord event, std::vector<store::Change>& out) {
  Log(LogLevel::kError, "job-quarantined", {{"job", job.id.value()}, {"reason", job.reason}});
  out.push_back(store::PutJob{std::make_shared<const Job>(job)});
  out.push_back(store::AppendEvent{job.id, std::move(event)});
}

bool IsKept(const KeptApart& kept, const std::string& entity) {
  auto is_it = [&](const store::DamagedRecord& record) { return record.entity == entity; };
  return std::any_of(kept.kept_before.begin(), kept.kept_before.end(), is_it) ||
         std::any_of(kept.damaged.begin(), kept.damaged.end(), is_it);
}

void Keep(const store::CrashRecord& crash, std::string record, KeptApart& kept, std::vector<store::Change>& out) {
  store::DamagedRecord damaged = {crash.entity, std::move(record), Describe(crash)};
  out.push_back(store::PutDamaged{damaged});
  kept.kept_before.push_back(std::move(damaged));
}

// Its record gives way when it crashes the coordinator though it is held (a job) or refused (a node).
void Apply(const store::CrashRecord& crash, KeptApart& kept, core::State& state, Instant now,
           std::vector<store::Change>& out) {
  if (crash.count < store::kCrashesMax || IsKept(kept, crash.entity)) return;
  const bool give_way = crash.count >= 2 * store::kCrashesMax;
  const std::string why = Describe(crash);
  if (std::optional<std::string> id = IdOf(core::kJobEntity, crash.entity)) {
    auto found = state.jobs.find(JobId(*id));
    if (found == state.jobs.end()) return;
    Job& job = found->second;
    if (give_way) {
      Keep(crash, store::EncodeJob(job), kept, out);
      PutJob(job, core::BuryJob(job, why, now), out);
    } else if (!job.quarantined && !IsTerminal(job.phase)) {
      PutJob(job, core::HoldJob(job, why, now), out);
    }
  } else if (std::optional<std::string> name = IdOf(core::kNodeEntity, crash.entity); name.has_value() && give_way) {
    auto node = state.nodes.find(NodeId(*name));
    if (node == state.nodes.end()) return;
    Log(LogLevel::kError, "node-quarantined", {{"node", *name}, {"reason", why}});
    Keep(crash, store::EncodeNode(node->second), kept, out);
    node->second = StandInFor(node->second, why);
    out.push_back(store::PutNode{std::make_shared<const Node>(node->second)});
  }
}

// What was loaded in its place is stored, as any record.
void PutStandIn(const store::DamagedRecord& record, const core::State& state, std::vector<store::Change>& out) {
  Log(LogLevel::kError, "record-damaged", {{"entity", record.entity}, {"reason", record.reason}});
  out.push_back(store::PutDamaged{record});
  if (std::optional<std::string> id = IdOf(core::kJobEntity, record.entity)) {
    out.push_back(store::PutJob{std::make_shared<const Job>(state.jobs.at(JobId(*id)))});
  } else if (std::optional<std::string> name = IdOf(core::kNodeEntity, record.entity)) {
    out.push_back(store::PutNode{std::make_shared<const Node>(state.nodes.at(NodeId(*name)))});
  }
}

// Nothing is undone that users were told of the stand-in meanwhile: one that was cancelled stays so.
void Recover(Job job, KeptApart& kept, core::State& state, Instant now, std::vector<store::Change>& out) {
  Job& present = state.jobs.at(job.id);
  if (!present.stand_in || IsTerminal(present.phase)) return;
  const std::string entity = absl::StrCat(core::kJobEntity, " ", job.id.value());
  job.last_event = present.last_event;
  // The store may have been restored from a backup meanwhile, which could not raise the counters of this record.
  job.generation_floor = std::max(job.generation_floor, job.last_generation) + store::kRestoreGap;
  present = std::move(job);
  PutJob(present, core::HoldJob(present, "its record could not be worked with, and can be read again", now), out);
  out.push_back(store::EraseDamaged{entity});
  std::erase_if(kept.kept_before, [&](const store::DamagedRecord& record) { return record.entity == entity; });
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

std::vector<store::Change> ApplyQuarantine(KeptApart& kept, core::State& state, Instant now) {
  std::vector<store::Change> changes;
  for (const store::DamagedRecord& record : kept.damaged) PutStandIn(record, state, changes);
  for (Job& job : kept.recovered) Recover(std::move(job), kept, state, now, changes);
  for (const store::CrashRecord& crash : kept.crashes) Apply(crash, kept, state, now, changes);
  if (!changes.empty()) {
    ++state.counters.revision;
    changes.push_back(store::PutCounters{{state.counters.next_job, state.counters.revision}});
  }
  return changes;
}

Quarantine::Quarantine(const KeptApart& kept) {
  for (const store::CrashRecord& crash : kept.crashes) {
    if (crash.count >= store::kCrashesMax) entries_[crash.entity] = {crash, Describe(crash)};
  }
  for (const std::vector<store::DamagedRecord>* records : {&kept.damaged, &kept.kept_before}) {
    for (const store::DamagedRecord& record : *records) {
      Entry& entry = entries_[record.entity];
      entry.crash.entity = record.entity;
      entry.reason = absl::StrCat(record.reason, "; its record is kept");
      entry.record_kept = true;
    }
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

std::vector<store::Change> Quarantine::Release(const std::string& entity) {
  MutexLock lock(mutex_);
  auto found = entries_.find(entity);
  std::vector<store::Change> changes = {store::EraseCrash{entity}};
  if (found == entries_.end()) return changes;
  if (found->second.record_kept && IdOf(core::kJobEntity, entity).has_value()) {
    found->second.crash.count = 0;
    return changes;
  }
  if (found->second.record_kept) changes.push_back(store::EraseDamaged{entity});
  entries_.erase(found);
  return changes;
}

}  // namespace llmctl::runtime
