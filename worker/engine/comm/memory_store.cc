#include "worker/engine/comm/memory_store.h"

#include <algorithm>
#include <chrono>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

#include "common/base/status.h"

namespace llmctl::engine::comm {

absl::Status MemoryStore::CheckOpen() const {
  return cancelled_ ? absl::UnavailableError(absl::StrCat("rendezvous cancelled: ", reason_)) : absl::OkStatus();
}

absl::Status MemoryStore::Set(const std::string& key, const std::string& value) {
  MutexLock lock(mutex_);
  LLM_RETURN_IF_ERROR(CheckOpen());
  values_[key] = value;
  changed_.NotifyAll();
  return absl::OkStatus();
}

absl::StatusOr<std::string> MemoryStore::Get(const std::string& key, absl::Duration timeout) {
  // A year stands for "for ever": an infinite duration would overflow the clock.
  auto longest = absl::ToChronoNanoseconds(std::min(timeout, absl::Hours(24 * 365)));
  auto deadline = std::chrono::steady_clock::now() + longest;
  MutexLock lock(mutex_);
  while (true) {
    LLM_RETURN_IF_ERROR(CheckOpen());
    auto it = values_.find(key);
    if (it != values_.end()) return it->second;
    if (std::chrono::steady_clock::now() >= deadline) {
      return absl::DeadlineExceededError(
          absl::StrCat("rendezvous key ", key, " was not set within ", absl::FormatDuration(timeout)));
    }
    changed_.WaitUntil(mutex_, deadline);
  }
}

absl::StatusOr<bool> MemoryStore::Exists(const std::string& key) {
  MutexLock lock(mutex_);
  LLM_RETURN_IF_ERROR(CheckOpen());
  return values_.count(key) > 0;
}

absl::StatusOr<int64_t> MemoryStore::Add(const std::string& key, int64_t amount) {
  MutexLock lock(mutex_);
  LLM_RETURN_IF_ERROR(CheckOpen());
  std::string& value = values_[key];
  int64_t number = 0;
  if (!value.empty() && !absl::SimpleAtoi(value, &number)) {
    return absl::InvalidArgumentError(absl::StrCat("rendezvous key ", key, " does not hold a number"));
  }
  value = absl::StrCat(number + amount);
  changed_.NotifyAll();
  return number + amount;
}

absl::StatusOr<std::string> MemoryStore::CompareSet(const std::string& key, const std::string& expected,
                                                    const std::string& desired) {
  MutexLock lock(mutex_);
  LLM_RETURN_IF_ERROR(CheckOpen());
  auto it = values_.find(key);
  if (it == values_.end() ? expected.empty() : it->second == expected) {
    values_[key] = desired;
    changed_.NotifyAll();
    return desired;
  }
  return it == values_.end() ? expected : it->second;
}

absl::StatusOr<bool> MemoryStore::Delete(const std::string& key) {
  MutexLock lock(mutex_);
  LLM_RETURN_IF_ERROR(CheckOpen());
  return values_.erase(key) > 0;
}

void MemoryStore::Cancel(absl::string_view reason) {
  MutexLock lock(mutex_);
  if (!cancelled_) reason_ = std::string(reason);
  cancelled_ = true;
  changed_.NotifyAll();
}

}  // namespace llmctl::engine::comm
