#include "worker/agent/host/probe.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <system_error>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "common/base/digest.h"
#include "common/base/file.h"
#include "common/base/status.h"
#include "worker/contract/trainer_config.h"

namespace llmctl::agent {
namespace {

std::string NoncePath(const std::string& directory, const std::string& nonce) {
  return absl::StrCat(directory, "/.llmctl-probe-", nonce);
}

bool IsPlainName(const std::string& nonce) {
  return !nonce.empty() && nonce.size() <= 128 && std::all_of(nonce.begin(), nonce.end(), [](unsigned char c) {
    return std::isalnum(c) || c == '-' || c == '_' || c == '.';
  });
}

// A job that has never run has no checkpoints: those in its place are another cluster's, whose job had the same id.
absl::Status CheckNoForeignCheckpoints(const ProbeOrdered& probe) {
  if (probe.generation.generation > 1) return absl::OkStatus();
  std::string directory = contract::JobDirectory(probe.checkpoint_directory, probe.generation.job.value());
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(directory, none)) {
    if (!absl::StartsWith(entry.path().filename().string(), "step-")) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("checkpoint.directory: ", directory, " holds checkpoints of another job with the id ",
                     probe.generation.job.value(), "; name another directory, or move that one away"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> Look(const ProbeOrdered& probe, const AllowedRoots& roots) {
  if (!IsPlainName(probe.nonce)) return absl::InvalidArgumentError("probe: the nonce is not a plain file name");
  absl::Status allowed = roots.Check(probe.checkpoint_directory);
  if (!allowed.ok()) return Annotate(allowed, "checkpoint.directory");
  allowed = roots.Check(probe.dataset);
  if (!allowed.ok()) return Annotate(allowed, "data.dataset");

  std::string path = NoncePath(probe.checkpoint_directory, probe.nonce);
  if (probe.write) {
    LLM_RETURN_IF_ERROR(CheckNoForeignCheckpoints(probe));
    absl::Status written = MakeDirectoriesDurably(probe.checkpoint_directory);
    if (written.ok()) written = WriteFileAtomically(path, probe.nonce);
    if (!written.ok()) return Annotate(written, "checkpoint.directory: this host cannot write to it");
  } else {
    absl::StatusOr<std::string> seen = ReadFile(path);
    if (!seen.ok()) {
      return Annotate(seen.status(),
                      "checkpoint.directory: this host does not see what the first host wrote there; all hosts of a job "
                      "need one shared file system");
    }
    if (*seen != probe.nonce) {
      return absl::DataLossError(absl::StrCat(path, ": this host sees other content than the first host wrote"));
    }
  }
  absl::StatusOr<std::string> manifest = ReadFile(probe.dataset + "/manifest.json");
  if (!manifest.ok()) {
    return Annotate(manifest.status(), "data.dataset: no dataset there; make it with `llmctl data prepare`");
  }
  return Sha256(*manifest);
}

// A full, failing or stale file system may be well again at the next attempt; a path that is wrong will not be.
bool IsInfrastructure(absl::StatusCode code) {
  return code == absl::StatusCode::kResourceExhausted || code == absl::StatusCode::kUnavailable ||
         code == absl::StatusCode::kInternal;
}

}  // namespace

ProbeResult ProbeFiles(const ProbeOrdered& probe, const AllowedRoots& roots) {
  ProbeResult result = {.generation = probe.generation, .nonce = probe.nonce};
  absl::StatusOr<std::string> digest = Look(probe, roots);
  result.ok = digest.ok();
  if (digest.ok()) {
    result.dataset_digest = *digest;
  } else {
    result.error = std::string(digest.status().message());
    result.infrastructure = IsInfrastructure(digest.status().code());
  }
  return result;
}

void RemoveProbeFile(const std::string& checkpoint_directory, const std::string& nonce) {
  if (IsPlainName(nonce)) ::unlink(NoncePath(checkpoint_directory, nonce).c_str());
}

}  // namespace llmctl::agent
