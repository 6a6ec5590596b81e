#include "common/spec/validate.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

#include "common/spec/field_rules.h"
#include "common/spec/pattern.h"
#include "common/spec/scalar.h"

namespace llmctl::spec {
namespace {

constexpr int kMapEntriesMax = 256;
constexpr size_t kEnvValueBytesMax = 32 * 1024;

// The rules between fields. Each looks only at fields that are not at fault already.
class CrossFieldRules {
 public:
  CrossFieldRules(const v1::JobSpec& spec, const Positions& given, FaultList& faults)
      : spec_(spec), given_(given), faults_(faults) {}

  void CheckModel() {
    const v1::Model& model = spec_.model();
    if (faults_.Concerns({"model.heads", "model.hiddenSize"})) return;
    if (model.hidden_size() % model.heads() != 0) {
      return Add("model.heads", model.heads(), "a divisor of model.hiddenSize (", model.hidden_size(), ")");
    }
    if (model.hidden_size() / model.heads() % 2 != 0) {
      Add("model.heads", model.heads(), "an even head size: model.hiddenSize / model.heads is ",
          model.hidden_size() / model.heads());
    }
    if (!faults_.Concerns({"model.kvHeads"}) && model.heads() % model.kv_heads() != 0) {
      Add("model.kvHeads", model.kv_heads(), "a divisor of model.heads (", model.heads(), ")");
    }
  }

  void CheckSchedule() {
    if (faults_.Concerns({"training.steps", "training.schedule.warmupSteps"})) return;
    int64_t warmup = spec_.training().schedule().warmup_steps();
    if (warmup > spec_.training().steps()) {
      Add("training.schedule.warmupSteps", warmup, "at most training.steps (", spec_.training().steps(), ")");
    }
  }

  void CheckWorkers() {
    const v1::WorkerCount& workers = spec_.resources().workers();
    if (faults_.Concerns({"resources.workers.min", "resources.workers.max"})) return;
    if (workers.max() < workers.min()) {
      Add("resources.workers.max", workers.max(), "at least resources.workers.min (", workers.min(), ")");
    }
  }

  // The ranks must be what the workers can give, and share the batch evenly.
  void CheckBatch() {
    const v1::Training& training = spec_.training();
    if (faults_.Concerns({"training.globalBatchSize", "training.microBatchSize"})) return;
    if (training.micro_batch_size() > training.global_batch_size()) {
      Add("training.microBatchSize", training.micro_batch_size(), "at most training.globalBatchSize (",
          training.global_batch_size(), ")");
    }
    if (faults_.Concerns({"resources.workers.min", "resources.workers.max", "resources.devicesPerWorker",
                          "parallelism.data"})) {
      return;
    }
    int64_t per_worker = spec_.resources().devices_per_worker();
    int64_t fewest = spec_.resources().workers().min() * per_worker;
    int64_t most = spec_.resources().workers().max() * per_worker;
    int64_t ranks = spec_.parallelism().data() == 0 ? fewest : spec_.parallelism().data();
    if (ranks % per_worker != 0 || ranks < fewest || ranks > most) {
      return Add("parallelism.data", ranks, "resources.workers x resources.devicesPerWorker, ",
                 fewest == most ? absl::StrCat(fewest)
                                : absl::StrCat("a multiple of ", per_worker, " from ", fewest, " to ", most));
    }
    if (training.global_batch_size() % ranks != 0) {
      Add("training.globalBatchSize", training.global_batch_size(), "a multiple of the ", ranks,
          " data-parallel ranks");
    }
  }

  void CheckEnv() {
    CheckEntryCount("env", spec_.env_size());
    for (const auto& [name, value] : spec_.env()) {
      std::string path = ChildPath("env", name);
      if (faults_.Concerns({path})) continue;
      if (!Matches(name, "[A-Za-z_][A-Za-z0-9_]{0,255}")) {
        Fail(path, "found a bad name, expected letters, digits and '_', not beginning with a digit");
      } else if (absl::StartsWith(name, "LLMCTL_")) {
        Fail(path, "found a name that begins with LLMCTL_, expected another: those are set by the system");
      } else if (value.size() > kEnvValueBytesMax || value.find('\0') != std::string::npos) {
        Fail(path, absl::StrCat("found a value of ", value.size(), " bytes or with a zero byte, expected at most ",
                                kEnvValueBytesMax, " bytes of text"));
      }
    }
  }

  void CheckLabels() {
    CheckEntryCount("metadata.labels", spec_.metadata().labels_size());
    for (const auto& [name, value] : spec_.metadata().labels()) {
      std::string path = ChildPath("metadata.labels", name);
      if (faults_.Concerns({path})) continue;
      if (!Matches(name, "[A-Za-z0-9]([-._/A-Za-z0-9]{0,61}[A-Za-z0-9])?")) {
        Fail(path, "found a bad name, expected 1 to 63 letters, digits, '-', '.', '_' and '/'");
      } else if (!Matches(value, "([A-Za-z0-9]([-._A-Za-z0-9]{0,61}[A-Za-z0-9])?)?")) {
        Fail(path, absl::StrCat("found ", Shown(value), ", expected up to 63 letters, digits, '-', '.' and '_'"));
      }
    }
  }

  void CheckPath(const std::string& path, const std::string& value, bool absolute) {
    if (value.empty() || faults_.Concerns({path})) return;
    if (value.find('\0') != std::string::npos || value.size() > 4096) {
      Fail(path, "found a path with a zero byte or of more than 4096 bytes, expected one that a file can have");
    } else if (absolute && value[0] != '/') {
      Fail(path, absl::StrCat("found ", Shown(value), ", expected an absolute path (llmctl makes them so)"));
    }
  }

 private:
  void CheckEntryCount(const std::string& path, int entries) {
    if (entries <= kMapEntriesMax) return;
    Fail(path, absl::StrCat("found ", entries, " names, expected at most ", kMapEntriesMax));
  }

  template <typename... Parts>
  void Add(const std::string& path, int64_t found, const Parts&... expected) {
    Fail(path, absl::StrCat("found ", found, ", expected ", expected...));
  }
  void Fail(const std::string& path, const std::string& text) { faults_.Add(given_, path, text); }

  const v1::JobSpec& spec_;
  const Positions& given_;
  FaultList& faults_;
};

// `resolved` is the specification with defaults.
void AddFaults(const v1::JobSpec& resolved, const ValidateOptions& options, const Positions& given,
               FaultList& faults) {
  CrossFieldRules rules(resolved, given, faults);
  rules.CheckModel();
  rules.CheckSchedule();
  rules.CheckWorkers();
  rules.CheckBatch();
  rules.CheckEnv();
  rules.CheckLabels();
  rules.CheckPath("data.dataset", resolved.data().dataset(), options.absolute_paths);
  rules.CheckPath("checkpoint.directory", resolved.checkpoint().directory(), options.absolute_paths);
  rules.CheckPath("initFrom", resolved.init_from(), options.absolute_paths);
}

}  // namespace

absl::Status ValidateJobSpec(const v1::JobSpec& spec, const ValidateOptions& options) {
  FaultList faults;
  AddJobSpecFaults(spec, options, Positions{}, faults);
  return faults.ToStatus("");
}

absl::StatusOr<v1::JobSpec> ResolveJobSpec(const v1::JobSpec& spec, const ValidateOptions& options) {
  FaultList faults;
  CheckFieldRules(spec, "", Positions{}, faults);
  v1::JobSpec resolved = spec;
  ApplyDefaults(resolved);
  AddFaults(resolved, options, Positions{}, faults);
  if (!faults.empty()) return faults.ToStatus("");
  return resolved;
}

void AddJobSpecFaults(const v1::JobSpec& spec, const ValidateOptions& options, const Positions& given,
                      FaultList& faults) {
  CheckFieldRules(spec, "", given, faults);
  v1::JobSpec resolved = spec;
  ApplyDefaults(resolved);
  AddFaults(resolved, options, given, faults);
}

}  // namespace llmctl::spec
