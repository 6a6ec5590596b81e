// A picture of threads (worker/contract/picture.h) as people read stacks.
//
// The registers and the stacks were copied when something was wrong; names and callers are worked out here, from the
// program's files as they were mapped then: their unwind tables (every distribution's libraries have them) and symbol
// tables. No debug information is read, and none is fetched.
#pragma once

#include <string>

#include "worker/contract/picture.h"

namespace llmctl::agent {

// A heading per thread and a line per frame, the main thread first:
//   thread 4711 llm-trainer: sleeping in futex_wait_queue
//     #0  pthread_cond_wait  libc.so.6
std::string StackText(const contract::Picture& picture);

}  // namespace llmctl::agent
