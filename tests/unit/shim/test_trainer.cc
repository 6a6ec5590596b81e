// A trainer that does as its first argument says, to see what a shim or an agent makes of it.
//
//   exit N        exits with N           signal N   dies by signal N
//   flood N       prints N bytes of numbered lines, then exits
//   stubborn      says ready, ignores SIGTERM
//   in-kernel     says ready, then waits in the kernel where only a kill reaches it
//   leave-child   leaves a process behind in its group, says its pid on stdout
//   leave-floods  leaves processes behind in sessions of their own that print and send for ever; exits with 7
//   chatter       sends progress as fast as it is read
//   environment   prints its environment
//   crash-pictured asks for its picture, then dies by SIGSEGV; exits with 99 if none is taken
//   crash-slowly  asks for its picture, says ready when that is some seconds old, and then never ends
//   talk          speaks the contract: says ready with the step 10 * rank, then obeys
//                   update "progress N", "commit N" (request id N), "wait KEY" (request id 1), "garbage",
//                          "last words": the longest fatal "user" that fits in a line
//                   stop -> fatal "user", exit 65      yield -> exit 10
//                 and repeats every reply it gets as update_result
//   standby       says waiting, and talks once the shim has spoken
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

#include "worker/contract/exit_codes.h"
#include "worker/contract/line_link.h"
#include "worker/contract/phase_page.h"
#include "worker/contract/shim_config.h"

extern char** environ;

namespace llmctl::contract {
namespace {

int Number(absl::string_view text) {
  int number = -1;
  (void)absl::SimpleAtoi(text, &number);
  return number;
}

LineLink Link() { return LineLink(UniqueFd(std::atoi(std::getenv(kShimFdVariable)))); }

[[noreturn]] void WaitForEver() {
  while (true) ::pause();
}

void Obey(LineLink& link, absl::string_view order) {
  if (absl::ConsumePrefix(&order, "progress ")) {
    (void)link.Send(Progress{.step = Number(order)});
  } else if (absl::ConsumePrefix(&order, "commit ")) {
    (void)link.Send(CheckpointCommit{.request_id = Number(order), .step = 7, .path = "/c"});
  } else if (absl::ConsumePrefix(&order, "wait ")) {
    (void)link.Send(StoreRequest{.request_id = 1, .operation = StoreOperation::kWait, .key = std::string(order)});
  } else if (order == "last words") {
    // JSON takes six bytes for each of these.
    std::string words(kLineBytesMax / 6, '\x01');
    while (!link.Send(Fatal{.failure_class = "user", .message = words}).ok()) words.pop_back();
  } else if (order == "garbage") {
    [[maybe_unused]] ssize_t n = ::write(link.fd(), "nonsense\n", 9);
  }
}

// The exit code, or -1 to go on.
int Handle(LineLink& link, const Message& message) {
  if (const auto* assignment = std::get_if<Assignment>(&message)) {
    (void)link.Send(Ready{.step = 10 * assignment->rank});
  } else if (const auto* update = std::get_if<Update>(&message)) {
    Obey(link, update->settings_json);
  } else if (const auto* reply = std::get_if<StoreReply>(&message)) {
    (void)link.Send(UpdateResult{.error = absl::StrCat("store ", reply->request_id, " ", reply->value)});
  } else if (const auto* reply = std::get_if<CheckpointCommitReply>(&message)) {
    (void)link.Send(UpdateResult{.error = absl::StrCat("commit ", reply->request_id)});
  } else if (std::holds_alternative<Stop>(message)) {
    (void)link.Send(Fatal{.failure_class = "user", .message = "told to stop"});
    return kExitUser;
  } else if (std::holds_alternative<Yield>(message)) {
    return kExitYielded;
  }
  return -1;
}

int Talk(bool waits_first) {
  LineLink link = Link();
  if (waits_first) {
    (void)link.Send(Waiting{});
    pollfd fd = {link.fd(), POLLIN, 0};
    ::poll(&fd, 1, -1);
  }
  (void)link.Send(Hello{.role = "trainer"});
  while (true) {
    pollfd fd = {link.fd(), POLLIN, 0};
    ::poll(&fd, 1, -1);
    std::vector<Message> messages;
    absl::Status status = link.Receive(messages);
    for (const Message& message : messages) {
      if (int code = Handle(link, message); code >= 0) return code;
    }
    if (!status.ok()) return kExitInternal;
  }
}

[[noreturn]] void Chatter() {
  LineLink link = Link();
  for (int64_t step = 1;; ++step) {
    (void)link.Send(Progress{.step = step});
    while (link.WantsWrite()) {
      pollfd fd = {link.fd(), POLLOUT, 0};
      ::poll(&fd, 1, -1);
      (void)link.Flush();
    }
  }
}

int Flood(int bytes) {
  for (int line = 0; bytes > 0; ++line, bytes -= 8) std::printf("%07d\n", line);
  std::fflush(stdout);
  return 0;
}

int LeaveChild() {
  pid_t child = ::fork();
  if (child == 0) WaitForEver();
  std::printf("%d", child);
  std::fflush(stdout);
  return 0;
}

[[noreturn]] void FloodForEver(int fd, const std::string& bytes, int ready) {
  ::setsid();
  // Ends by SIGPIPE when nobody is left to read.
  for (bool first = true;; first = false) {
    [[maybe_unused]] ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (first) n = ::write(ready, "!", 1);
  }
}

int LeaveFloods() {
  std::string lines;
  while (lines.size() < 64 << 10) absl::StrAppend(&lines, *EncodeLine({.message = Progress{.step = 1}}), "\n");
  int ready[2];
  if (::pipe(ready) != 0) return 99;
  if (::fork() == 0) FloodForEver(STDOUT_FILENO, lines, ready[1]);
  if (::fork() == 0) FloodForEver(std::atoi(std::getenv(kShimFdVariable)), lines, ready[1]);
  int started = 0;
  for (char byte; started < 2 && ::read(ready[0], &byte, 1) == 1;) ++started;
  return started == 2 ? 7 : 99;
}

bool GetPicture() {
  absl::StatusOr<std::unique_ptr<PhasePage>> page = PhasePage::Create(kPhaseFile);
  if (!page.ok() || std::getenv(kPicturesVariable) == nullptr) return false;
  ::kill(::getppid(), SIGUSR1);
  for (int ms = 0; (*page)->pictures() == 0; ++ms) {
    if (ms == 20000) return false;
    ::poll(nullptr, 0, 1);
  }
  return true;
}

int CrashPictured() {
  if (!GetPicture()) return 99;
  ::signal(SIGSEGV, SIG_DFL);  // a sanitizer would make an exit code of it
  return ::raise(SIGSEGV);
}

int CrashSlowly() {
  if (!GetPicture()) return 99;
  ::poll(nullptr, 0, 2100);
  LineLink link = Link();
  (void)link.Send(Ready{});
  WaitForEver();
}

int Main(const std::vector<std::string>& arguments) {
  const std::string& mode = arguments.at(1);
  int number = arguments.size() > 2 ? Number(arguments[2]) : 0;
  if (mode == "exit") return number;
  if (mode == "signal") ::raise(number);
  if (mode == "flood") return Flood(number);
  if (mode == "leave-child") return LeaveChild();
  if (mode == "leave-floods") return LeaveFloods();
  if (mode == "chatter") Chatter();
  if (mode == "talk" || mode == "standby") return Talk(/*waits_first=*/mode == "standby");
  if (mode == "stubborn") {
    ::signal(SIGTERM, SIG_IGN);
    LineLink link = Link();
    (void)link.Send(Ready{});
    WaitForEver();
  }
  if (mode == "in-kernel") {
    LineLink link = Link();
    (void)link.Send(Ready{});
    // Whoever has made one waits uninterruptibly until it has gone. (Sanitizers make a fork of vfork().)
    if (::syscall(SYS_clone, CLONE_VFORK | SIGCHLD, nullptr, nullptr, nullptr, nullptr) == 0) WaitForEver();
  }
  if (mode == "crash-pictured") return CrashPictured();
  if (mode == "crash-slowly") return CrashSlowly();
  if (mode == "environment") {
    for (char** entry = environ; *entry != nullptr; ++entry) std::printf("%s\n", *entry);
    return 0;
  }
  return 99;
}

}  // namespace
}  // namespace llmctl::contract

int main(int argc, char** argv) { return llmctl::contract::Main(std::vector<std::string>(argv, argv + argc)); }
