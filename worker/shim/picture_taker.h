// PictureTaker: what the threads of a trainer are doing, seen from outside (worker/contract/picture.h).
//
// ptrace, because a trainer that hangs does not run signal handlers, and because it neither interrupts system calls
// nor needs a word of the trainer's consent: the shim is its parent. All threads are stopped at once, each is copied
// as it stops and let go at once. A thread that waits uninterruptibly in the kernel does not stop: it is named without
// a stack and let go when it comes back, which Settle() has to see to. Nothing here reaps the process itself: how it
// ended is its parent's to hear, though a tracer that waits for all of its threads would take that too.
#pragma once

#include <sys/types.h>

#include <map>
#include <string>

#include "worker/contract/picture.h"

namespace llmctl::shim {

class PictureTaker {
 public:
  // `pid` is a child of this process. Takes at most some 50 ms, however it goes; nothing of it is an error.
  contract::Picture Take(pid_t pid, const std::string& reason);
  // At every SIGCHLD: lets go of threads that have stopped late, and forgets those that have ended.
  void Settle();

 private:
  // Threads that have yet to stop, each with its process.
  std::map<pid_t, pid_t> unsettled_;
};

}  // namespace llmctl::shim
