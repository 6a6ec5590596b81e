// Work that may never end: a thread for each piece, that nobody waits for.
//
// A look at a file on a mount that is gone may block for ever. Then it must hold up neither a look at another file
// system nor the end of the agent, and a thread that waits in the kernel cannot be told to stop. So each key has a
// thread of its own while it has work, which is done in order, and the threads are let go with whatever they wait for:
// a job holds what it uses, and nothing of who adds it. Thread-safe.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

namespace llmctl::agent {

class LooseThreads {
 public:
  explicit LooseThreads(size_t threads_max);
  LooseThreads(const LooseThreads&) = delete;
  LooseThreads& operator=(const LooseThreads&) = delete;

  // After what was added before under `key`. False, and nothing is done: as many threads as may be are at work.
  bool Add(const std::string& key, std::function<void()> job);

 private:
  struct Shared;
  const size_t threads_max_;
  const std::shared_ptr<Shared> shared_;
};

}  // namespace llmctl::agent
