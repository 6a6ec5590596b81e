#include "client/local/shims.h"

#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <system_error>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

#include "common/base/file.h"
#include "common/base/instant.h"

namespace llmctl::client {
namespace {

// /proc/PID/cmdline: arguments, each ended by a zero byte.
bool IsShimUnder(const std::string& command_line, const std::string& directory) {
  std::vector<absl::string_view> arguments = absl::StrSplit(command_line, '\0');
  if (!absl::EndsWith(arguments[0], "llm-shim")) return false;
  for (absl::string_view argument : arguments) {
    if (absl::StartsWith(argument, absl::StrCat("--dir=", directory, "/"))) return true;
  }
  return false;
}

}  // namespace

std::vector<pid_t> FindShims(const std::string& directory) {
  std::vector<pid_t> out;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    pid_t pid = 0;
    if (!absl::SimpleAtoi(entry.path().filename().string(), &pid)) continue;
    // A process may end while we look; then it is none that is left.
    auto command_line = ReadFile((entry.path() / "cmdline").string());
    if (command_line.ok() && IsShimUnder(*command_line, directory)) out.push_back(pid);
  }
  return out;
}

std::vector<pid_t> AwaitNoShims(const std::string& directory, absl::Duration patience) {
  const absl::Duration deadline = Now().monotonic + patience;
  while (true) {
    std::vector<pid_t> left = FindShims(directory);
    if (left.empty() || Now().monotonic >= deadline) return left;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

}  // namespace llmctl::client
