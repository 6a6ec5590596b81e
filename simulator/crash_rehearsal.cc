#include "simulator/crash_rehearsal.h"

#include <variant>

#include "absl/strings/str_cat.h"

#include "common/base/check.h"
#include "common/base/status.h"
#include "coordinator/store/sqlite/sqlite_store.h"

namespace llmctl::simulator {
namespace {

// More than a commit takes: the disk may also die behind it, or not at all.
constexpr int kOperationsMost = 10;

constexpr char kFile[] = "rehearsal.db";

// Making a schema takes longer than a rehearsal: done once.
const CrashDisk::Image& EmptyStore() {
  static const CrashDisk::Image image = [] {
    CrashDisk disk("llm-simulator-new-store");
    absl::StatusOr<std::unique_ptr<store::Store>> store = store::OpenSqliteStore({.path = kFile, .vfs = disk.name()});
    CHECK(store.ok()) << store.status().message();
    // Closed in order, SQLite leaves no log behind.
    store->reset();
    return disk.Save();
  }();
  return image;
}

}  // namespace

absl::Status CrashRehearsal::Open() {
  LLM_ASSIGN_OR_RETURN(store_, store::OpenSqliteStore({.path = kFile, .vfs = disk_.name()}));
  LLM_ASSIGN_OR_RETURN(term_, store_->AcquireTerm());
  return absl::OkStatus();
}

absl::Status CrashRehearsal::Begin(const RecordStore& durable) {
  disk_.Restore(EmptyStore());
  LLM_RETURN_IF_ERROR(Open());
  std::vector<store::Change> changes;
  for (const auto& [id, job] : durable.jobs()) changes.push_back(store::PutJob{job});
  for (const auto& [id, node] : durable.nodes()) changes.push_back(store::PutNode{node});
  changes.push_back(store::PutCounters{durable.counters()});
  return store_->Commit(term_, changes);
}

std::string CrashRehearsal::Run(const RecordStore& all, const std::vector<store::Change>& batch, Dice& dice) {
  RecordStore durable = all.ReplacedBy(batch);
  if (absl::Status ready = Begin(durable); !ready.ok()) {
    return absl::StrCat("the store cannot be brought to where the records are: ", ready.message());
  }
  disk_.DieAfter(dice.Pick(kOperationsMost));
  bool confirmed = store_->Commit(term_, batch).ok();
  Drop();
  disk_.Revive(/*power_lost=*/dice.Happens(0.8), dice);
  int64_t before = term_;
  if (absl::Status opened = Open(); !opened.ok()) return absl::StrCat("it does not open again: ", opened.message());
  if (term_ != before + 1) return absl::StrCat("its term went from ", before, " to ", term_);
  std::string wrong = Compare(durable, batch, confirmed);
  Drop();
  return wrong;
}

// Without its disk's death SQLite would write on as it closes.
void CrashRehearsal::Drop() {
  disk_.Die();
  store_.reset();
}

std::string CrashRehearsal::Compare(const RecordStore& durable, const std::vector<store::Change>& batch,
                                    bool confirmed) {
  absl::StatusOr<store::Records> found = store_->Load();
  if (!found.ok()) return absl::StrCat("its records cannot be read back: ", found.status().message());
  RecordStore after = durable;
  for (const store::Change& change : batch) {
    // History is not of the state.
    if (!std::holds_alternative<store::AppendEvent>(change)) (void)after.Apply(change);
  }
  std::string with = after.Difference(*found);
  if (with.empty()) return "";
  if (confirmed) return absl::StrCat("what it confirmed is lost: ", with, " differs");
  std::string without = durable.Difference(*found);
  if (without.empty()) return "";
  return absl::StrCat("it has recovered neither all nor nothing of a commit: ", without, " differs, and ", with);
}

}  // namespace llmctl::simulator
