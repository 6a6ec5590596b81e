#include "worker/trainer/link_store.h"

#include "common/base/status.h"
#include "worker/contract/messages.h"

namespace llmctl::trainer {

using contract::StoreOperation;
using contract::StoreReply;

absl::Status LinkStore::Set(const std::string& key, const std::string& value) {
  return link_.Call({.operation = StoreOperation::kSet, .key = key, .value = value}, call_timeout_).status();
}

absl::StatusOr<std::string> LinkStore::Get(const std::string& key, absl::Duration timeout) {
  // Answered with the value, at once if it is there: one round trip in either case.
  LLM_ASSIGN_OR_RETURN(StoreReply reply, link_.Call({.operation = StoreOperation::kWait, .key = key}, timeout));
  if (!reply.found) return absl::UnavailableError(absl::StrCat("rendezvous key ", key, " is gone again"));
  return reply.value;
}

absl::StatusOr<bool> LinkStore::Exists(const std::string& key) {
  LLM_ASSIGN_OR_RETURN(StoreReply reply, link_.Call({.operation = StoreOperation::kGet, .key = key}, call_timeout_));
  return reply.found;
}

absl::StatusOr<int64_t> LinkStore::Add(const std::string& key, int64_t amount) {
  LLM_ASSIGN_OR_RETURN(StoreReply reply,
                       link_.Call({.operation = StoreOperation::kAdd, .key = key, .amount = amount}, call_timeout_));
  return reply.number;
}

absl::StatusOr<std::string> LinkStore::CompareSet(const std::string& key, const std::string& expected,
                                                  const std::string& desired) {
  LLM_ASSIGN_OR_RETURN(
      StoreReply reply,
      link_.Call({.operation = StoreOperation::kCompareSet, .key = key, .value = desired, .expected = expected},
                 call_timeout_));
  return reply.value;
}

absl::StatusOr<bool> LinkStore::Delete(const std::string& key) {
  LLM_ASSIGN_OR_RETURN(StoreReply reply, link_.Call({.operation = StoreOperation::kDelete, .key = key}, call_timeout_));
  return reply.found;
}

}  // namespace llmctl::trainer
