// A RendezvousStore for ranks that share a process.
#pragma once

#include <map>
#include <string>

#include "absl/base/thread_annotations.h"

#include "common/base/mutex.h"
#include "worker/engine/comm/rendezvous_store.h"

namespace llmctl::engine::comm {

class MemoryStore : public RendezvousStore {
 public:
  absl::Status Set(const std::string& key, const std::string& value) override;
  absl::StatusOr<std::string> Get(const std::string& key, absl::Duration timeout) override;
  absl::StatusOr<bool> Exists(const std::string& key) override;
  absl::StatusOr<int64_t> Add(const std::string& key, int64_t amount) override;
  absl::StatusOr<std::string> CompareSet(const std::string& key, const std::string& expected,
                                         const std::string& desired) override;
  absl::StatusOr<bool> Delete(const std::string& key) override;
  void Cancel(absl::string_view reason) override;

 private:
  absl::Status CheckOpen() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Mutex mutex_;
  CondVar changed_;
  std::map<std::string, std::string> values_ ABSL_GUARDED_BY(mutex_);
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  std::string reason_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace llmctl::engine::comm
