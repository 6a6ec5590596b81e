// The rendezvous of a job, kept in the coordinator's memory and reached over the shim.
#pragma once

#include <string>

#include "worker/engine/comm/rendezvous_store.h"
#include "worker/trainer/shim_link.h"

namespace llmctl::trainer {

class LinkStore : public engine::comm::RendezvousStore {
 public:
  // `call_timeout` bounds the calls that do not wait for another rank.
  LinkStore(ShimLink& link, absl::Duration call_timeout) : link_(link), call_timeout_(call_timeout) {}

  absl::Status Set(const std::string& key, const std::string& value) override;
  absl::StatusOr<std::string> Get(const std::string& key, absl::Duration timeout) override;
  absl::StatusOr<bool> Exists(const std::string& key) override;
  absl::StatusOr<int64_t> Add(const std::string& key, int64_t amount) override;
  absl::StatusOr<std::string> CompareSet(const std::string& key, const std::string& expected,
                                         const std::string& desired) override;
  absl::StatusOr<bool> Delete(const std::string& key) override;
  void Cancel(absl::string_view reason) override { link_.CancelCalls(reason); }

 private:
  ShimLink& link_;
  const absl::Duration call_timeout_;
};

}  // namespace llmctl::trainer
