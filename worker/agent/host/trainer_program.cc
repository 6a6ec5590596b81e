#include "worker/agent/host/trainer_program.h"

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"

#include "common/base/digest.h"
#include "common/base/file.h"
#include "common/base/status.h"

namespace llmctl::agent {
namespace {

bool SameFile(const struct stat& a, const struct stat& b) {
  auto same = [](const timespec& x, const timespec& y) { return x.tv_sec == y.tv_sec && x.tv_nsec == y.tv_nsec; };
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino && a.st_size == b.st_size && same(a.st_mtim, b.st_mtim) &&
         same(a.st_ctim, b.st_ctim);
}

}  // namespace

absl::StatusOr<TrainerProgram> TrainerProgram::Open(std::string path) {
  TrainerProgram program(std::move(path));
  LLM_RETURN_IF_ERROR(program.Look());
  return program;
}

absl::Status TrainerProgram::Look() {
  struct stat now = {};
  if (::stat(path_.c_str(), &now) != 0) return ErrnoStatus(errno, absl::StrCat("look at ", path_));
  if (!digest_.empty() && SameFile(now, seen_)) return absl::OkStatus();
  LLM_ASSIGN_OR_RETURN(std::string content, ReadFile(path_));
  digest_ = Sha256(content);
  // As it was before it was read: written to since, it is read again next time.
  seen_ = now;
  return absl::OkStatus();
}

absl::Status TrainerProgram::Check(const std::string& digest) const {
  if (digest.empty() || digest == digest_) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(path_, " on this host has digest ", digest_.substr(0, 12),
                                                    ", the gang was placed with ", digest.substr(0, 12),
                                                    ": it was replaced meanwhile"));
}

}  // namespace llmctl::agent
