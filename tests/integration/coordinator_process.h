// llm-coordinator as a process of its own, for tests of what happens to a process: it is killed, stopped, and its
// disk taken away.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

#include "common/base/file.h"

namespace llmctl {

// False if `condition` has not become true within `patience`.
inline bool WaitUntil(const std::function<bool()>& condition,
                      std::chrono::milliseconds patience = std::chrono::seconds(30)) {
  auto deadline = std::chrono::steady_clock::now() + patience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    ::poll(nullptr, 0, 5);
  }
  return true;
}

class CoordinatorProcess {
 public:
  CoordinatorProcess() {
    char path[] = "/tmp/llm-coordinator-XXXXXX";
    directory_ = mkdtemp(path);
  }
  ~CoordinatorProcess() {
    Signal(SIGCONT);
    Kill();
    if (::testing::Test::HasFailure()) std::fputs(Log().c_str(), stderr);
    std::filesystem::remove_all(directory_);
  }
  CoordinatorProcess(const CoordinatorProcess&) = delete;
  CoordinatorProcess& operator=(const CoordinatorProcess&) = delete;

  // The first start chooses a port, later ones serve the same.
  void Start(const std::vector<std::string>& flags) {
    std::filesystem::remove(directory_ + "/address");
    std::vector<std::string> command = {
        absl::StrCat(std::getenv("LLMCTL_TEST_BIN"), "/llm-coordinator"), "--data-dir=" + directory_ + "/data",
        "--address-file=" + directory_ + "/address", "--metrics-address-file=" + directory_ + "/metrics",
        "--listen=" + (address_.empty() ? "127.0.0.1:0" : address_)};
    command.insert(command.end(), flags.begin(), flags.end());
    std::vector<char*> argv;
    for (std::string& part : command) argv.push_back(part.data());
    argv.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 2, (directory_ + "/log").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    ASSERT_EQ(::posix_spawn(&pid_, argv[0], &actions, nullptr, argv.data(), environ), 0) << argv[0];
    posix_spawn_file_actions_destroy(&actions);
    ASSERT_TRUE(WaitUntil([&] { return ReadFile(directory_ + "/address").ok(); })) << Log();
    address_ = *ReadFile(directory_ + "/address");
    address_.pop_back();
  }

  void Signal(int signal) const {
    if (pid_ > 0) ::kill(pid_, signal);
  }
  void Kill() {
    Signal(SIGKILL);
    if (pid_ > 0) ::waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }
  // From now on a write beyond this many bytes of any file fails.
  void LimitFileSize(rlim_t bytes) const {
    rlimit limit = {bytes, RLIM_INFINITY};
    ASSERT_EQ(::prlimit(pid_, RLIMIT_FSIZE, &limit, nullptr), 0);
  }

  const std::string& address() const { return address_; }
  std::string Log() const { return ReadFile(directory_ + "/log").value_or(""); }

 private:
  std::string directory_;
  std::string address_;
  pid_t pid_ = 0;
};

}  // namespace llmctl
