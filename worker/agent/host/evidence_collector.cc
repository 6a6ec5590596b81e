#include "worker/agent/host/evidence_collector.h"

#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "common/observe/log.h"

namespace llmctl::agent {

EvidenceCollector::~EvidenceCollector() {
  MutexLock lock(mutex_);
  ending_ = true;
  if (running_ != 0) ::kill(running_, SIGKILL);
}

void EvidenceCollector::Collect(std::vector<std::string> arguments) {
  if (program_.empty()) return;
  work_.Add([this, arguments = std::move(arguments)] { Run(arguments); });
}

void EvidenceCollector::Run(const std::vector<std::string>& arguments) {
  std::vector<char*> argv = {const_cast<char*>(program_.c_str())};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  char* environment[] = {nullptr};
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  // Ours are blocked for signalfd.
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  pid_t pid = 0;
  int error = 0;
  {
    MutexLock lock(mutex_);
    if (ending_) return;
    error = ::posix_spawn(&pid, program_.c_str(), nullptr, &attributes, argv.data(), environment);
    if (error == 0) running_ = pid;
  }
  posix_spawnattr_destroy(&attributes);
  if (error != 0) {
    Log(LogLevel::kWarning, "evidence-not-collected", {{"program", program_}, {"error", std::strerror(error)}});
    return;
  }
  int status = 0;
  // Left as it is until its number is no longer ours to kill.
  siginfo_t end = {};
  while (::waitid(P_PID, static_cast<id_t>(pid), &end, WEXITED | WNOWAIT) != 0 && errno == EINTR) {
  }
  {
    MutexLock lock(mutex_);
    running_ = 0;
  }
  ::waitpid(pid, &status, 0);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    Log(LogLevel::kWarning, "evidence-not-collected", {{"program", program_}, {"wait_status", status}});
  }
}

}  // namespace llmctl::agent
