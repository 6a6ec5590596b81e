#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

#include "client/command/verbs.h"
#include "client/output/figures.h"
#include "common/base/file.h"
#include "common/base/status.h"
#include "common/base/unique_fd.h"

namespace llmctl::client {
namespace {

// A folder gets a file of its own for each backup.
std::string TargetFile(const std::string& target) {
  std::error_code none;
  if (!std::filesystem::is_directory(target, none)) return target;
  return absl::StrCat(target, "/llmctl-", absl::FormatTime("%Y%m%d-%H%M%S", absl::Now(), absl::UTCTimeZone()),
                      ".backup");
}

absl::Status SyncFile(const std::string& path) {
  UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  return file.valid() && ::fsync(file.get()) == 0 ? absl::OkStatus() : ErrnoStatus(errno, absl::StrCat("fsync ", path));
}

}  // namespace

absl::StatusOr<ExitCode> AdminBackup(const std::string& target, Session& session) {
  const std::string path = TargetFile(target);
  const std::string part = path + ".part";
  std::ofstream file(part, std::ios::binary | std::ios::trunc);
  if (!file.is_open()) return ErrnoStatus(errno, absl::StrCat("create ", part));
  int64_t bytes = 0;
  absl::Status received = session.cluster.Backup([&](const std::string& piece) {
    bytes += static_cast<int64_t>(piece.size());
    file.write(piece.data(), static_cast<std::streamsize>(piece.size()));
    return file.good();
  });
  file.close();
  if (received.ok() && !file.good()) received = absl::ResourceExhaustedError(absl::StrCat("cannot write ", part));
  if (received.ok()) received = SyncFile(part);
  std::error_code error;
  if (received.ok()) std::filesystem::rename(part, path, error);
  if (error) received = ErrnoStatus(error.value(), absl::StrCat("rename ", part, " to ", path));
  if (!received.ok()) {
    std::error_code none;
    std::filesystem::remove(part, none);
    return received;
  }
  LLM_RETURN_IF_ERROR(SyncDirectory(std::filesystem::path(path).parent_path().string()));
  session.out << path << ": " << HumanCount(static_cast<double>(bytes)) << " bytes\n";
  return ExitCode::kOk;
}

}  // namespace llmctl::client
