#include "worker/data/pipeline/prepare_corpus.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "common/base/file.h"
#include "common/base/status.h"
#include "common/base/unique_fd.h"
#include "common/json/strict_json.h"
#include "worker/data/pipeline/worker_processes.h"
#include "worker/data/pipeline/settings.h"
#include "worker/data/pipeline/work_journal.h"
#include "worker/data/pipeline/write_stage.h"

namespace llmctl::data {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kRecordBytesMin = int64_t{32} << 20;
// What a process has besides records and buffers: its program, tables, and the scratch of a thread.
constexpr int64_t kProcessBytes = int64_t{64} << 20;
constexpr int64_t kThreadBytes = int64_t{40} << 20;
constexpr const char* kShardNames[] = {"train.bin", "train.idx", "validation.bin", "validation.idx"};

// What models and windows will take in every process, from the sizes of their files (docs/data/perplexity.md).
int64_t FixedBytes(const contract::CorpusConfig& config) {
  auto file_bytes = [](const std::string& path) -> int64_t {
    std::error_code error;
    int64_t bytes = path.empty() ? 0 : static_cast<int64_t>(fs::file_size(path, error));
    return error ? 0 : bytes;  // whoever loads it says what is wrong
  };
  int64_t bytes = 0;
  if (config.language) bytes += file_bytes(config.language->model);
  if (config.perplexity) {
    for (const contract::PerplexityModelConfig& model : config.perplexity->models) {
      bytes += absl::EndsWith(model.arpa, ".gz") ? 2 * file_bytes(model.arpa) : file_bytes(model.arpa) / 2;
    }
  }
  constexpr int64_t kTokenBytes = 4;
  if (config.pack) bytes += kTokenBytes * config.pack->window_tokens;
  return bytes;
}

absl::Status Remove(const std::string& path) {
  if (::unlink(path.c_str()) == 0 || errno == ENOENT) return absl::OkStatus();
  return ErrnoStatus(errno, absl::StrCat("remove ", path));
}

bool Exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

// One run at a time writes to a folder.
absl::StatusOr<UniqueFd> LockFolder(const std::string& folder) {
  std::string path = folder + "/lock";
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!fd.valid()) return ErrnoStatus(errno, absl::StrCat("open ", path));
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) == 0) return fd;
  if (errno != EWOULDBLOCK) return ErrnoStatus(errno, absl::StrCat("lock ", path));
  return absl::FailedPreconditionError(absl::StrCat("another run is writing to ", folder, "; wait for it or end it"));
}

// A dataset that is there stays, unless it is to be replaced.
absl::Status ClearOutput(const std::string& output, const std::string& work, bool force) {
  std::string manifest = output + "/manifest.json";
  if (Exists(manifest) && !force) {
    return absl::AlreadyExistsError(
        absl::StrCat("output ", output, " holds a dataset already; choose another folder or pass --force"));
  }
  bool is_ours = Exists(work);
  for (const char* name : kShardNames) {
    if (force || is_ours || !Exists(absl::StrCat(output, "/", name))) continue;
    return absl::AlreadyExistsError(absl::StrCat("output ", output, " holds ", name,
                                                 " already; choose another folder or pass --force"));
  }
  LLM_RETURN_IF_ERROR(MakeDirectories(work));
  if (!force) return absl::OkStatus();
  // The old manifest must be gone for good before its shards are.
  LLM_RETURN_IF_ERROR(Remove(manifest));
  LLM_RETURN_IF_ERROR(SyncDirectory(output));
  for (const char* name : kShardNames) LLM_RETURN_IF_ERROR(Remove(absl::StrCat(output, "/", name)));
  return absl::OkStatus();
}

// Whether a file of the work folder answers questions later.
bool IsForAudit(const fs::path& path) {
  std::string name = path.filename().string();
  return absl::EndsWith(name, ".verdicts") || absl::EndsWith(name, ".segment") ||
         absl::EndsWith(name, ".losses");
}

// Copies by hard link: the work folder is still whole if this is interrupted.
absl::Status KeepAudit(const std::string& work, const std::string& audit, const std::vector<std::string>& folders) {
  std::error_code error;
  fs::remove_all(audit, error);
  if (error) return ErrnoStatus(error.value(), absl::StrCat("remove ", audit));
  LLM_RETURN_IF_ERROR(MakeDirectories(audit));
  for (const std::string& folder : folders) {
    for (fs::recursive_directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
      if (!it->is_regular_file() || !IsForAudit(it->path())) continue;
      fs::path to = audit / fs::relative(it->path(), work, error);
      if (!error) fs::create_directories(to.parent_path(), error);
      if (!error) fs::create_hard_link(it->path(), to, error);
      if (error) break;
    }
    if (error) return ErrnoStatus(error.value(), absl::StrCat("keep what is in ", folder, " under ", audit));
  }
  return absl::OkStatus();
}

std::vector<std::string> FoldersOf(const Workspace& workspace) {
  return {fs::path(workspace.SegmentPath({})).parent_path().string(),
          fs::path(workspace.TokensPath({}, "")).parent_path().string()};
}

class Run {
 public:
  Run(const contract::CorpusConfig& config, const PrepareOptions& options)
      : config_(config), options_(options), work_(config.output + "/.work") {}

  absl::StatusOr<PreparedCorpus> Do(Pipeline::Observer* observer) {
    LLM_ASSIGN_OR_RETURN(ProcessLimits limits, LimitsOf(config_));
    LLM_ASSIGN_OR_RETURN(bool made, IsMade());
    if (made) return Result();
    LLM_RETURN_IF_ERROR(ClearOutput(config_.output, work_, options_.force));
    LLM_ASSIGN_OR_RETURN(UniqueFd lock, LockFolder(work_));
    LLM_ASSIGN_OR_RETURN(CorpusPlan plan, MakeCorpusPlan(config_, options_.limits));
    LLM_RETURN_IF_ERROR(WriteFileAtomically(work_ + "/plan.json", EncodeCorpusPlan(plan)));
    Workspace workspace(plan, work_);
    LLM_RETURN_IF_ERROR(RunStages(workspace, limits, observer));
    return Conclude(workspace);
  }

 private:
  // Whether a run with this plan was stopped when only its work folder was left to be removed.
  absl::StatusOr<bool> IsMade() const {
    absl::StatusOr<std::string> manifest = ReadFile(config_.output + "/manifest.json");
    absl::StatusOr<std::string> draft = ReadFile(absl::StrCat(work_, "/", kManifestDraftName));
    if (options_.force || !manifest.ok() || !draft.ok() || *manifest != *draft) return false;
    LLM_ASSIGN_OR_RETURN(CorpusPlan plan, MakeCorpusPlan(config_, options_.limits));
    absl::StatusOr<std::string> made = ReadFile(config_.output + "/audit/plan.json");
    return made.ok() && *made == EncodeCorpusPlan(plan);
  }

  absl::Status RunStages(const Workspace& workspace, const ProcessLimits& limits, Pipeline::Observer* observer) {
    LLM_ASSIGN_OR_RETURN(std::string boot_id, BootId());
    WorkJournal journal(workspace, boot_id);
    LLM_RETURN_IF_ERROR(journal.Begin());
    LLM_ASSIGN_OR_RETURN(std::unique_ptr<StageBoard> board, StageBoard::Create());
    LLM_ASSIGN_OR_RETURN(
        WorkerProcesses helpers,
        WorkerProcesses::Start({"work", absl::StrCat("--folder=", work_), absl::StrCat("--board=", board->fd()),
                                absl::StrCat("--threads=", limits.threads),
                                absl::StrCat("--memory-bytes=", limits.memory_bytes)},
                               config_.workers - 1));
    Pipeline pipeline(workspace, config_.output);
    CheckedObserver checked(pipeline, journal, helpers, observer);
    absl::Status status = pipeline.Run(limits, *board, &checked);
    LLM_RETURN_IF_ERROR(checked.worker_status);
    if (!status.ok() && !absl::IsAborted(status)) return status;
    // Of a process that has failed, how it ended says more.
    LLM_RETURN_IF_ERROR(helpers.Wait());
    return status;
  }

  // Looks after the other processes and the journal, too.
  class CheckedObserver : public Pipeline::Observer {
   public:
    CheckedObserver(const Pipeline& pipeline, WorkJournal& journal, WorkerProcesses& helpers,
                    Pipeline::Observer* observer)
        : pipeline_(pipeline), journal_(journal), helpers_(helpers), observer_(observer) {}
    void Begin(int stage, absl::string_view name, const Stage& made, const StageProgress& progress) override {
      if (observer_ != nullptr) observer_->Begin(stage, name, made, progress);
    }
    absl::Status End(int stage, bool done) override {
      absl::Status status = observer_ == nullptr ? absl::OkStatus() : observer_->End(stage, done);
      std::string folder = pipeline_.FolderFinishedBy(stage);
      if (done && !folder.empty()) status.Update(journal_.Finished(folder));
      return status;
    }
    absl::Status Check() override {
      worker_status = helpers_.Check();
      LLM_RETURN_IF_ERROR(worker_status);
      return observer_ == nullptr ? absl::OkStatus() : observer_->Check();
    }
    absl::Status worker_status;  // of the first that ended in another way than it should

   private:
    const Pipeline& pipeline_;
    WorkJournal& journal_;
    WorkerProcesses& helpers_;
    Pipeline::Observer* observer_;
  };

  absl::StatusOr<PreparedCorpus> Conclude(const Workspace& workspace) {
    LLM_RETURN_IF_ERROR(KeepAudit(work_, config_.output + "/audit", FoldersOf(workspace)));
    LLM_RETURN_IF_ERROR(
        WriteFileAtomically(config_.output + "/audit/plan.json", EncodeCorpusPlan(workspace.plan())));
    LLM_ASSIGN_OR_RETURN(std::string manifest, ReadFile(absl::StrCat(work_, "/", kManifestDraftName)));
    LLM_RETURN_IF_ERROR(WriteFileAtomically(config_.output + "/manifest.json", manifest));
    return Result();
  }

  // Of a dataset that is made; nothing is left of the work.
  absl::StatusOr<PreparedCorpus> Result() {
    PreparedCorpus out;
    LLM_ASSIGN_OR_RETURN(out.manifest, ReadManifest(config_.output));
    LLM_ASSIGN_OR_RETURN(out.digest, ManifestDigest(config_.output));
    std::string report_path = absl::StrCat(config_.output, "/", kReportName);
    LLM_ASSIGN_OR_RETURN(std::string report, ReadFile(report_path));
    LLM_ASSIGN_OR_RETURN(out.report, ParseStrictJson(report, report_path));
    if (out.report["counters"].contains(kDamageCounter)) {
      out.damaged_files = out.report["counters"][kDamageCounter].get<int64_t>();
    }
    if (!options_.keep_work) {
      std::error_code error;
      fs::remove_all(work_, error);
      if (error) return ErrnoStatus(error.value(), absl::StrCat("remove ", work_));
    }
    return out;
  }

  const contract::CorpusConfig& config_;
  const PrepareOptions& options_;
  const std::string work_;
};

}  // namespace

absl::StatusOr<ProcessLimits> LimitsOf(const contract::CorpusConfig& config) {
  absl::StatusOr<int64_t> memory = ParseByteSize(config.memory);
  if (!memory.ok()) return Annotate(memory.status(), "memory");
  int cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  ProcessLimits limits;
  limits.threads = config.threads > 0 ? config.threads : std::max(1, cores / config.workers);
  int64_t taken = kProcessBytes + limits.threads * kThreadBytes + FixedBytes(config);
  limits.memory_bytes = *memory / config.workers - taken;
  if (limits.memory_bytes >= kRecordBytesMin) return limits;
  return absl::InvalidArgumentError(
      absl::StrCat("memory: ", config.memory, " is too little for ", config.workers, " processes of ", limits.threads,
                   " threads with their models, expected at least ",
                   (config.workers * (taken + kRecordBytesMin) >> 20) + 1, "M"));
}

absl::StatusOr<PreparedCorpus> PrepareCorpus(const contract::CorpusConfig& config, const PrepareOptions& options,
                                             Pipeline::Observer* observer) {
  return Run(config, options).Do(observer);
}

absl::Status TakePart(const std::string& work_folder, int board_fd, const ProcessLimits& limits) {
  std::string path = work_folder + "/plan.json";
  LLM_ASSIGN_OR_RETURN(std::string text, ReadFile(path));
  LLM_ASSIGN_OR_RETURN(CorpusPlan plan, DecodeCorpusPlan(text, path));
  LLM_ASSIGN_OR_RETURN(std::unique_ptr<StageBoard> board, StageBoard::Join(board_fd));
  Workspace workspace(plan, work_folder);
  return Pipeline(workspace, plan.config.output).Run(limits, *board, nullptr);
}

}  // namespace llmctl::data
