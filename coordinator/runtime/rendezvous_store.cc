#include "coordinator/runtime/rendezvous_store.h"

#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

#include "common/base/overloaded.h"

namespace llmctl::runtime {
namespace {

// What a map node and two strings cost beside their characters.
constexpr size_t kEntryOverhead = 128;

// A rank waits for its answer before it asks on, so what may be asked again is among the newest; this much holds
// some seven thousand of them.
constexpr size_t kAppliedBytesMost = size_t{1} << 20;

size_t EntryBytes(const std::string& key, const std::string& value) {
  return key.size() + value.size() + kEntryOverhead;
}

StoreAnswer Failure(std::string error) {
  StoreAnswer answer;
  answer.error = std::move(error);
  return answer;
}

}  // namespace

bool RendezvousStore::FindApplied(const Generation& generation, int64_t request, StoreAnswer& answer) {
  auto first = generation.applied.find(request);
  if (first == generation.applied.end()) return false;
  answer = first->second;
  return true;
}

void RendezvousStore::KeepApplied(Generation& generation, int64_t request, const StoreAnswer& answer) {
  // What was refused may be tried again.
  if (request == 0 || !answer.error.empty()) return;
  generation.applied.emplace(request, answer);
  generation.applied_order.push_back(request);
  generation.applied_bytes += EntryBytes("", answer.value);
  while (generation.applied_bytes > kAppliedBytesMost) {
    auto oldest = generation.applied.find(generation.applied_order.front());
    generation.applied_bytes -= EntryBytes("", oldest->second.value);
    generation.applied.erase(oldest);
    generation.applied_order.pop_front();
  }
}

void RendezvousStore::Do(const GenerationId& id, Asker asker, const StoreOperation& operation, Answer answer) {
  Answers answers;
  {
    MutexLock lock(mutex_);
    ForgetOlder(id);
    Generation& generation = generations_[id];
    StoreAnswer own;
    bool waits = false;
    auto look_up = [&](const std::string& key) {
      auto it = generation.values.find(key);
      if (it == generation.values.end()) return false;
      own.found = true;
      own.value = it->second;
      return true;
    };
    std::visit(Overloaded{
                   [&](const StoreSet& op) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
                     own = Put(generation, op.key, op.value, answers) ? StoreAnswer{.found = true} : Full();
                   },
                   [&](const StoreGet& op) { look_up(op.key); },
                   [&](const StoreWait& op) {
                     if (look_up(op.key)) return;
                     waits = true;
                     generation.waiters.emplace(op.key, Waiter{asker.link, std::move(answer)});
                   },
                   [&](const StoreAdd& op) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
                     if (FindApplied(generation, asker.request, own)) return;
                     own = Add(generation, op, answers);
                     KeepApplied(generation, asker.request, own);
                   },
                   [&](const StoreCompareSet& op) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
                     if (FindApplied(generation, asker.request, own)) return;
                     own = CompareSet(generation, op, answers);
                     KeepApplied(generation, asker.request, own);
                   },
                   [&](const StoreDelete& op) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
                     own.found = Erase(generation, op.key);
                   },
               },
               operation);
    if (!waits) answers.emplace_back(std::move(answer), std::move(own));
  }
  for (auto& [to, what] : answers) to(what);
}

void RendezvousStore::Drop(const GenerationId& id) {
  std::multimap<std::string, Waiter> waiters;
  {
    MutexLock lock(mutex_);
    auto it = generations_.find(id);
    if (it == generations_.end()) return;
    bytes_ -= it->second.bytes;
    waiters = std::move(it->second.waiters);
    generations_.erase(it);
  }
  for (auto& [key, waiter] : waiters) waiter.answer(Failure("the generation is over"));
}

void RendezvousStore::DropLink(int64_t link) {
  MutexLock lock(mutex_);
  for (auto& [id, generation] : generations_) {
    std::erase_if(generation.waiters, [&](const auto& entry) { return entry.second.link == link; });
  }
}

void RendezvousStore::ForgetOlder(const GenerationId& id) {
  auto it = generations_.lower_bound(GenerationId{id.job, 0, 0});
  while (it != generations_.end() && it->first.job == id.job && it->first < id) {
    bytes_ -= it->second.bytes;
    it = generations_.erase(it);
  }
}

size_t RendezvousStore::bytes() const {
  MutexLock lock(mutex_);
  return bytes_;
}

bool RendezvousStore::Put(Generation& generation, const std::string& key, std::string value, Answers& answers) {
  size_t before = 0;
  if (auto it = generation.values.find(key); it != generation.values.end()) before = EntryBytes(key, it->second);
  size_t after = EntryBytes(key, value);
  if (generation.bytes - before + after > limits_.generation_bytes_max ||
      bytes_ - before + after > limits_.total_bytes_max) {
    return false;
  }
  generation.bytes += after - before;
  bytes_ += after - before;
  auto [first, last] = generation.waiters.equal_range(key);
  for (auto it = first; it != last; ++it) {
    answers.emplace_back(std::move(it->second.answer), StoreAnswer{.found = true, .value = value});
  }
  generation.waiters.erase(first, last);
  generation.values[key] = std::move(value);
  return true;
}

StoreAnswer RendezvousStore::Add(Generation& generation, const StoreAdd& add, Answers& answers) {
  int64_t number = 0;
  if (auto it = generation.values.find(add.key); it != generation.values.end()) {
    if (!absl::SimpleAtoi(it->second, &number)) {
      return Failure(absl::StrCat("add to key '", add.key, "': its value is not a number"));
    }
  }
  int64_t sum = 0;
  if (__builtin_add_overflow(number, add.amount, &sum)) {
    return Failure(absl::StrCat("add to key '", add.key, "': the sum does not fit 64 bits"));
  }
  if (!Put(generation, add.key, absl::StrCat(sum), answers)) return Full();
  return {.found = true, .number = sum};
}

StoreAnswer RendezvousStore::CompareSet(Generation& generation, const StoreCompareSet& op, Answers& answers) {
  auto it = generation.values.find(op.key);
  bool missing = it == generation.values.end();
  if (missing ? op.expected.empty() : it->second == op.expected) {
    if (!Put(generation, op.key, op.desired, answers)) return Full();
    return {.found = true, .value = op.desired};
  }
  // c10d answers with the expected value when the key is missing.
  return {.found = !missing, .value = missing ? op.expected : it->second};
}

bool RendezvousStore::Erase(Generation& generation, const std::string& key) {
  auto it = generation.values.find(key);
  if (it == generation.values.end()) return false;
  size_t freed = EntryBytes(key, it->second);
  generation.bytes -= freed;
  bytes_ -= freed;
  generation.values.erase(it);
  return true;
}

StoreAnswer RendezvousStore::Full() const {
  return Failure(absl::StrCat("the rendezvous store is full: at most ", limits_.generation_bytes_max,
                              " bytes a generation and ", limits_.total_bytes_max, " in all"));
}

}  // namespace llmctl::runtime
