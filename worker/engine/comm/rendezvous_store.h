// RendezvousStore: the small shared dictionary through which ranks find each other before a group exists.
//
// In a job it is the coordinator's memory, reached over the shim (worker/trainer/link_store.h): no port to
// choose, and any rank may die. Keys belong to one generation of one job. Values are bytes.
//
// Thread-safe. Errors are Unavailable (cancelled, or no way to the store) and DeadlineExceeded.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace llmctl::engine::comm {

class RendezvousStore {
 public:
  virtual ~RendezvousStore() = default;

  virtual absl::Status Set(const std::string& key, const std::string& value) = 0;
  // Waits until the key exists.
  virtual absl::StatusOr<std::string> Get(const std::string& key, absl::Duration timeout) = 0;
  virtual absl::StatusOr<bool> Exists(const std::string& key) = 0;
  // A missing key counts as 0; the sum is kept as decimal text.
  virtual absl::StatusOr<int64_t> Add(const std::string& key, int64_t amount) = 0;
  // Stores `desired` if the key holds `expected`, or is missing and `expected` is empty; what the key holds
  // then.
  virtual absl::StatusOr<std::string> CompareSet(const std::string& key, const std::string& expected,
                                                 const std::string& desired) = 0;
  // False if there was no such key.
  virtual absl::StatusOr<bool> Delete(const std::string& key) = 0;

  // Ends every waiting and later call with Unavailable and `reason`.
  virtual void Cancel(absl::string_view reason) = 0;
};

}  // namespace llmctl::engine::comm
