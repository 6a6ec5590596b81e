// RendezvousStore: the keys by which the ranks of one generation find each other.
//
// In memory only, under (job, attempt, generation), and gone with the generation. After a restart of the
// coordinator the agents set their keys again. Bounded in bytes per generation and in all: a rank that floods it
// gets an error, not the coordinator's memory.
//
// An agent asks again after a reconnect when it has no answer, though the question may have arrived. An add or a
// compare-and-set that has been applied is not applied again: its request id gives the first answer.
//
// Thread-safe. Answers run on the calling thread, without a lock held: that of the request, or for a wait that of
// the set which ends it; they must not block.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "common/base/ids.h"
#include "common/base/mutex.h"

namespace llmctl::runtime {

struct StoreSet {
  std::string key;
  std::string value;
};
struct StoreGet {
  std::string key;
};
// Answered with the value when the key exists.
struct StoreWait {
  std::string key;
};
// The value is a decimal number; a missing key counts as 0.
struct StoreAdd {
  std::string key;
  int64_t amount = 0;
};
// As c10d's compareSet: sets `desired` if the value is `expected`, or if the key is missing and `expected` empty.
struct StoreCompareSet {
  std::string key;
  std::string expected;
  std::string desired;
};
struct StoreDelete {
  std::string key;
};
using StoreOperation = std::variant<StoreSet, StoreGet, StoreWait, StoreAdd, StoreCompareSet, StoreDelete>;

struct StoreAnswer {
  bool found = false;
  std::string value;
  int64_t number = 0;
  std::string error;
};

class RendezvousStore {
 public:
  // Who asks what for. `link` is the asker's connection; `request` is unique in the generation, and the same when the
  // question is asked again; 0: nobody waits for the answer.
  struct Asker {
    int64_t link = 0;
    int64_t request = 0;
  };
  struct Limits {
    size_t generation_bytes_max = size_t{64} << 20;
    size_t total_bytes_max = size_t{1} << 30;
  };
  using Answer = std::function<void(const StoreAnswer&)>;

  explicit RendezvousStore(Limits limits) : limits_(limits) {}

  // The caller has checked that the generation is live.
  void Do(const GenerationId& generation, Asker asker, const StoreOperation& operation, Answer answer);
  // The generation is over: its waits are answered with an error.
  void Drop(const GenerationId& generation);
  // The connection is gone: nobody is left to answer its waits. The agent asks again when it is back.
  void DropLink(int64_t link);

  size_t bytes() const;

 private:
  struct Waiter {
    int64_t link = 0;
    Answer answer;
  };
  struct Generation {
    std::map<std::string, std::string> values;
    std::multimap<std::string, Waiter> waiters;
    size_t bytes = 0;  // of the values
    // Answers to what was applied and must not be applied again, by request, and the order in which they came.
    std::map<int64_t, StoreAnswer> applied;
    std::deque<int64_t> applied_order;
    size_t applied_bytes = 0;
  };
  using Answers = std::vector<std::pair<Answer, StoreAnswer>>;

  // Stores the value and moves the waits that it ends to `answers`; false if there is no room.
  bool Put(Generation& generation, const std::string& key, std::string value, Answers& answers)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  StoreAnswer Add(Generation& generation, const StoreAdd& add, Answers& answers) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  StoreAnswer CompareSet(Generation& generation, const StoreCompareSet& compare_set, Answers& answers)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Fills in the answer of a request that has been applied before; false if it has not.
  static bool FindApplied(const Generation& generation, int64_t request, StoreAnswer& answer);
  static void KeepApplied(Generation& generation, int64_t request, const StoreAnswer& answer);
  bool Erase(Generation& generation, const std::string& key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // A request that raced the end of its generation leaves keys behind: they go with the next generation.
  void ForgetOlder(const GenerationId& id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  StoreAnswer Full() const;

  const Limits limits_;

  mutable Mutex mutex_;
  std::map<GenerationId, Generation> generations_ ABSL_GUARDED_BY(mutex_);
  size_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace llmctl::runtime
