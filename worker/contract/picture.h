// picture.bin: the threads of a trainer at one moment, seen from outside.
//
// The shim takes it (worker/shim/picture_taker.h): registers and the upper part of the stack of each thread, and where
// the program's files were mapped. That is a matter of milliseconds and needs nothing of the trainer, so it works on
// one that is stopped, stuck in a library, or waits in the kernel. Names are put to the addresses later, by
// llm-evidence, when nobody waits.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace llmctl::contract {

struct ThreadPicture {
  int64_t tid = 0;
  std::string name;
  std::string state;   // letter of /proc: R runs, S sleeps, D waits in the kernel, T is stopped, ...
  std::string kernel;  // the kernel function that it waits in; empty if the kernel does not tell
  std::string note;    // why there is no stack; empty: there is one
  // In the order of the DWARF numbers of this machine, the program counter last.
  std::vector<uint64_t> registers;
  uint64_t stack_address = 0;
  std::string stack;
};

struct Picture {
  std::string reason;
  int64_t nanoseconds = 0;  // CLOCK_MONOTONIC
  std::string maps;         // /proc/<pid>/maps
  std::vector<ThreadPicture> threads;
};

std::string EncodePicture(const Picture& picture);
// DataLoss if it is none, or cut.
absl::StatusOr<Picture> DecodePicture(absl::string_view bytes);

}  // namespace llmctl::contract
