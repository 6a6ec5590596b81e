#include "worker/agent/host/probe.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

#include "common/base/digest.h"
#include "common/base/file.h"
#include "common/base/status.h"

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

absl::StatusOr<std::string> Look(const ProbeOrdered& probe, const AllowedRoots& roots) {
  if (!IsPlainName(probe.nonce)) return absl::InvalidArgumentError("probe: the nonce is not a plain file name");
  absl::Status allowed = roots.Check(probe.checkpoint_directory);
  if (!allowed.ok()) return Annotate(allowed, "checkpoint.directory");
  allowed = roots.Check(probe.dataset);
  if (!allowed.ok()) return Annotate(allowed, "data.dataset");

  std::string path = NoncePath(probe.checkpoint_directory, probe.nonce);
  if (probe.write) {
    absl::Status written = MakeDirectories(probe.checkpoint_directory);
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

}  // namespace

ProbeResult ProbeFiles(const ProbeOrdered& probe, const AllowedRoots& roots) {
  ProbeResult result = {.generation = probe.generation};
  absl::StatusOr<std::string> digest = Look(probe, roots);
  result.ok = digest.ok();
  if (digest.ok()) {
    result.dataset_digest = *digest;
  } else {
    result.error = std::string(digest.status().message());
  }
  return result;
}

void RemoveProbeFile(const std::string& checkpoint_directory, const std::string& nonce) {
  if (IsPlainName(nonce)) ::unlink(NoncePath(checkpoint_directory, nonce).c_str());
}

}  // namespace llmctl::agent
