#include "worker/data/pipeline/work_journal.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

#include "common/base/file.h"
#include "common/base/instant.h"
#include "common/base/status.h"
#include "common/base/unique_fd.h"

namespace llmctl::data {
namespace {

namespace fs = std::filesystem;

constexpr absl::Duration kSyncInterval = absl::Seconds(5);

bool IsSyncedAtOnce(const std::string& name) { return absl::StartsWith(name, "clean-"); }

}  // namespace

absl::StatusOr<std::string> BootId() {
  LLM_ASSIGN_OR_RETURN(std::string id, ReadFile("/proc/sys/kernel/random/boot_id"));
  return std::string(absl::StripAsciiWhitespace(id));
}

WorkJournal::WorkJournal(const Workspace& workspace, std::string boot_id)
    : workspace_(workspace),
      boot_id_(std::move(boot_id)),
      path_(workspace.folder() + "/journal"),
      synced_at_(Now().monotonic) {}

absl::Status WorkJournal::Begin() {
  absl::StatusOr<std::string> text = ReadFile(path_);
  if (!text.ok() && !absl::IsNotFound(text.status())) return text.status();
  std::vector<std::string> lines = absl::StrSplit(text.value_or(""), '\n', absl::SkipEmpty());
  bool same_boot = !lines.empty() && lines.front() == boot_id_;
  if (!lines.empty()) finished_.insert(lines.begin() + 1, lines.end());
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(workspace_.folder(), error)) {
    std::string name = entry.path().filename().string();
    if (same_boot || !entry.is_directory() || IsSyncedAtOnce(name) || finished_.count(name) > 0) continue;
    fs::remove_all(entry.path(), error);
    if (error) return ErrnoStatus(error.value(), absl::StrCat("remove ", entry.path().string()));
  }
  if (error) return ErrnoStatus(error.value(), absl::StrCat("search folder ", workspace_.folder()));
  return WriteFileAtomically(path_, absl::StrCat(boot_id_, "\n", absl::StrJoin(finished_, "\n"), "\n"));
}

absl::Status WorkJournal::Finished(const std::string& folder) {
  finished_.insert(fs::path(folder).filename().string());
  if (Now().monotonic - synced_at_ < kSyncInterval) return absl::OkStatus();
  return Sync();
}

absl::Status WorkJournal::Sync() {
  UniqueFd fd(::open(workspace_.folder().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) return ErrnoStatus(errno, absl::StrCat("open ", workspace_.folder()));
  if (::syncfs(fd.get()) != 0) return ErrnoStatus(errno, absl::StrCat("sync ", workspace_.folder()));
  synced_at_ = Now().monotonic;
  return WriteFileAtomically(path_, absl::StrCat(boot_id_, "\n", absl::StrJoin(finished_, "\n"), "\n"));
}

}  // namespace llmctl::data
