#include "worker/engine/comm/torch_store.h"

#include <cstdint>
#include <utility>

#include "absl/time/time.h"

namespace llmctl::engine::comm {
namespace {

std::string ToText(const std::vector<uint8_t>& bytes) { return std::string(bytes.begin(), bytes.end()); }

std::vector<uint8_t> ToBytes(const std::string& text) { return std::vector<uint8_t>(text.begin(), text.end()); }

void ThrowUnlessOk(const absl::Status& status) { TORCH_CHECK(status.ok(), status.ToString()); }

template <typename T>
T ValueOrThrow(absl::StatusOr<T> result) {
  ThrowUnlessOk(result.status());
  return *std::move(result);
}

class TorchStore : public c10d::Store {
 public:
  TorchStore(RendezvousStore* store, std::chrono::milliseconds timeout) : c10d::Store(timeout), store_(store) {}

  c10::intrusive_ptr<c10d::Store> clone() override { return c10::make_intrusive<TorchStore>(store_, timeout_); }

  void set(const std::string& key, const std::vector<uint8_t>& value) override {
    ThrowUnlessOk(store_->Set(key, ToText(value)));
  }
  std::vector<uint8_t> compareSet(const std::string& key, const std::vector<uint8_t>& expected,
                                  const std::vector<uint8_t>& desired) override {
    return ToBytes(ValueOrThrow(store_->CompareSet(key, ToText(expected), ToText(desired))));
  }
  std::vector<uint8_t> get(const std::string& key) override {
    return ToBytes(ValueOrThrow(store_->Get(key, absl::FromChrono(timeout_))));
  }
  int64_t add(const std::string& key, int64_t value) override { return ValueOrThrow(store_->Add(key, value)); }
  bool deleteKey(const std::string& key) override { return ValueOrThrow(store_->Delete(key)); }
  bool check(const std::vector<std::string>& keys) override {
    for (const std::string& key : keys) {
      if (!ValueOrThrow(store_->Exists(key))) return false;
    }
    return true;
  }
  int64_t getNumKeys() override { TORCH_CHECK(false, "the rendezvous store does not count its keys"); }
  void wait(const std::vector<std::string>& keys) override { wait(keys, timeout_); }
  void wait(const std::vector<std::string>& keys, const std::chrono::milliseconds& timeout) override {
    auto deadline = std::chrono::steady_clock::now() + timeout;
    for (const std::string& key : keys) {
      ValueOrThrow(store_->Get(key, absl::FromChrono(deadline - std::chrono::steady_clock::now())));
    }
  }

 private:
  RendezvousStore* store_;
};

}  // namespace

c10::intrusive_ptr<c10d::Store> MakeTorchStore(RendezvousStore* store, std::chrono::milliseconds timeout) {
  return c10::make_intrusive<TorchStore>(store, timeout);
}

}  // namespace llmctl::engine::comm
