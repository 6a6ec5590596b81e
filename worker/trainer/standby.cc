#include "worker/trainer/standby.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "absl/strings/str_cat.h"

#include "common/base/file.h"
#include "common/base/status.h"
#include "worker/contract/messages.h"
#include "worker/contract/shim_config.h"

namespace llmctl::trainer {

absl::StatusOr<bool> AwaitJob(int shim_fd) {
  LLM_ASSIGN_OR_RETURN(std::string line, contract::EncodeLine({.message = contract::Waiting{}}));
  line.push_back('\n');
  // Far less than the socket's buffer.
  if (::send(shim_fd, line.data(), line.size(), MSG_NOSIGNAL) < 0) return false;
  pollfd shim = {shim_fd, POLLIN, 0};
  while (::poll(&shim, 1, -1) < 0) {
    if (errno != EINTR) return ErrnoStatus(errno, "wait for the shim");
  }
  char first = 0;
  return ::recv(shim_fd, &first, 1, MSG_PEEK) > 0;
}

absl::Status TakeEnvironment(const std::string& path, int shim_fd) {
  LLM_ASSIGN_OR_RETURN(std::string json, ReadFile(path));
  LLM_ASSIGN_OR_RETURN(contract::ShimConfig config, contract::DecodeShimConfig(json));
  ::clearenv();
  ::setenv(contract::kShimFdVariable, absl::StrCat(shim_fd).c_str(), /*overwrite=*/1);
  for (const std::string& entry : config.environment) {
    size_t end = entry.find('=');
    if (end == std::string::npos) return absl::InvalidArgumentError(absl::StrCat("environment: ", entry));
    ::setenv(entry.substr(0, end).c_str(), entry.substr(end + 1).c_str(), /*overwrite=*/1);
  }
  return absl::OkStatus();
}

}  // namespace llmctl::trainer
