#include "worker/agent/host/state_dir.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

#include "common/base/file.h"
#include "common/base/status.h"
#include "worker/contract/messages.h"

namespace llmctl::agent {
namespace {

absl::StatusOr<std::string> ReadIfThere(const std::string& path) {
  absl::StatusOr<std::string> content = ReadFile(path);
  if (absl::IsNotFound(content.status())) return std::string();
  return content;
}

std::string FenceLine(const JobId& job, int64_t generation) {
  return absl::StrCat(job.value(), "\t", generation, "\n");
}

absl::Status Damaged(const std::string& path, absl::string_view line, absl::string_view expected) {
  return absl::DataLossError(absl::StrCat(path, ": expected ", expected, ", found \"", line.substr(0, 80),
                                          "\"; stop all trainers of this host before you remove it"));
}

}  // namespace

absl::StatusOr<StateDir> StateDir::Open(const std::string& path) {
  std::string absolute = path;
  for (const char* folder : {"", "/shims", "/standby", "/ended", "/evidence"}) {
    LLM_RETURN_IF_ERROR(MakeDirectories(absolute + folder));
  }
  // Configurations may hold what users put into env.
  if (::chmod(absolute.c_str(), 0700) != 0) return ErrnoStatus(errno, absl::StrCat("restrict ", absolute));
  std::string lock_path = absolute + "/lock";
  UniqueFd lock(::open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!lock.valid()) return ErrnoStatus(errno, absl::StrCat("open ", lock_path));
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat(absolute, " is in use by another llm-worker; give each its own --state-dir"));
  }
  return StateDir(std::move(absolute), std::move(lock));
}

absl::StatusOr<int64_t> StateDir::NextIncarnation() {
  std::string path = path_ + "/incarnation";
  LLM_ASSIGN_OR_RETURN(std::string text, ReadIfThere(path));
  int64_t last = 0;
  if (!text.empty() && !absl::SimpleAtoi(absl::StripSuffix(text, "\n"), &last)) {
    return Damaged(path, text, "a number");
  }
  LLM_RETURN_IF_ERROR(WriteFileAtomically(path, absl::StrCat(last + 1, "\n")));
  return last + 1;
}

absl::Status StateDir::Load(State& state) const {
  std::string path = path_ + "/fences";
  LLM_ASSIGN_OR_RETURN(std::string fences, ReadIfThere(path));
  // A line without its end was being written when the host went down: nothing was done on its strength.
  fences.erase(fences.rfind('\n') + 1);
  for (absl::string_view line : absl::StrSplit(fences, '\n', absl::SkipEmpty())) {
    std::vector<std::string> parts = absl::StrSplit(line, '\t');
    int64_t generation = 0;
    if (parts.size() != 2 || !absl::SimpleAtoi(parts[1], &generation)) return Damaged(path, line, "job and generation");
    state.fences[JobId(parts[0])] = generation;
  }
  path = path_ + "/outbox";
  LLM_ASSIGN_OR_RETURN(std::string outbox, ReadIfThere(path));
  for (absl::string_view line : absl::StrSplit(outbox, '\n', absl::SkipEmpty())) {
    std::vector<std::string> parts = absl::StrSplit(line, '\t');
    GenerationId id;
    if (parts.size() != 4 || !absl::SimpleAtoi(parts[1], &id.attempt) || !absl::SimpleAtoi(parts[2], &id.generation)) {
      return Damaged(path, line, "job, attempt, generation and a line of the contract");
    }
    id.job = JobId(parts[0]);
    absl::StatusOr<contract::Envelope> envelope = contract::DecodeLine(parts[3]);
    if (!envelope.ok()) return Annotate(envelope.status(), path);
    const auto* commit = std::get_if<contract::CheckpointCommit>(&envelope->message);
    if (commit == nullptr) return Damaged(path, parts[3], "a checkpoint_commit");
    state.outbox[{id, commit->request_id}] = *commit;
  }
  return absl::OkStatus();
}

absl::Status StateDir::PersistFences(const State& state, const JobId& job) {
  std::string path = path_ + "/fences";
  if (!fences_.valid()) {
    std::string text;
    for (const auto& [each, generation] : state.fences) absl::StrAppend(&text, FenceLine(each, generation));
    LLM_RETURN_IF_ERROR(WriteFileAtomically(path, text));
    // If it cannot be opened it is written anew the next time.
    fences_.Reset(::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
    return absl::OkStatus();
  }
  std::string line = FenceLine(job, state.fences.at(job));
  ssize_t written = ::write(fences_.get(), line.data(), line.size());
  if (written == static_cast<ssize_t>(line.size()) && ::fdatasync(fences_.get()) == 0) return absl::OkStatus();
  absl::Status status = ErrnoStatus(written < 0 || written == static_cast<ssize_t>(line.size()) ? errno : ENOSPC,
                                    absl::StrCat("add to ", path));
  fences_.Reset();
  return status;
}

absl::Status StateDir::PersistOutbox(const State& state) const {
  std::string text;
  for (const auto& [key, commit] : state.outbox) {
    LLM_ASSIGN_OR_RETURN(std::string line, contract::EncodeLine({.message = commit}));
    const GenerationId& id = key.first;
    absl::StrAppend(&text, id.job.value(), "\t", id.attempt, "\t", id.generation, "\t", line, "\n");
  }
  return WriteFileAtomically(path_ + "/outbox", text);
}

}  // namespace llmctl::agent
