#include "worker/trainer/link_store.h"

#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/trainer/shim_end.h"

namespace llmctl::trainer {
namespace {

constexpr absl::Duration kLong = absl::Seconds(20);

// Answers requests from a dictionary, as agent and coordinator would; ends when the link does.
void Serve(ShimEnd& shim) {
  std::map<std::string, std::string> values;
  std::vector<contract::StoreRequest> waiting;
  shim.SayHello();
  while (auto request = shim.HearA<contract::StoreRequest>()) {
    contract::StoreReply reply = {.request_id = request->request_id};
    auto it = values.find(request->key);
    switch (request->operation) {
      case contract::StoreOperation::kGet:
      case contract::StoreOperation::kWait:
        reply.found = it != values.end();
        reply.value = reply.found ? it->second : "";
        if (request->operation == contract::StoreOperation::kWait && !reply.found) {
          waiting.push_back(*request);
          continue;
        }
        break;
      case contract::StoreOperation::kSet:
        values[request->key] = request->value;
        for (const auto& waiter : std::exchange(waiting, {})) {
          if (waiter.key != request->key) {
            waiting.push_back(waiter);
            continue;
          }
          shim.Say(contract::StoreReply{.request_id = waiter.request_id, .found = true, .value = values[waiter.key]});
        }
        break;
      case contract::StoreOperation::kAdd:
        reply.number = (it == values.end() ? 0 : std::stoll(it->second)) + request->amount;
        values[request->key] = std::to_string(reply.number);
        break;
      case contract::StoreOperation::kCompareSet:
        if ((it == values.end() ? "" : it->second) == request->expected) values[request->key] = request->value;
        reply.value = values[request->key];
        break;
      case contract::StoreOperation::kDelete:
        reply.found = values.erase(request->key) > 0;
        break;
    }
    shim.Say(reply);
  }
}

class LinkStoreTest : public testing::Test {
 protected:
  ~LinkStoreTest() override {
    link_.reset();
    server_.join();
  }

  ShimEnd shim_;
  std::unique_ptr<ShimLink> link_ = std::make_unique<ShimLink>(shim_.trainer_fd());
  LinkStore store_{*link_, kLong};
  std::thread server_{[this] { Serve(shim_); }};
};

TEST_F(LinkStoreTest, KeepsBytes) {
  std::string bytes("\0\xff\n{\"", 5);

  ASSERT_TRUE(store_.Set("key", bytes).ok());

  auto value = store_.Get("key", kLong);
  ASSERT_TRUE(value.ok()) << value.status();
  EXPECT_EQ(*value, bytes);
}

TEST_F(LinkStoreTest, GetWaitsForAnotherRank) {
  std::thread other([&] { EXPECT_TRUE(store_.Set("late", "value").ok()); });

  auto value = store_.Get("late", kLong);

  other.join();
  ASSERT_TRUE(value.ok()) << value.status();
  EXPECT_EQ(*value, "value");
}

TEST_F(LinkStoreTest, AddsComparesAndDeletes) {
  EXPECT_EQ(*store_.Add("n", 2), 2);
  EXPECT_EQ(*store_.Add("n", 3), 5);
  EXPECT_EQ(*store_.CompareSet("leader", "", "a"), "a");
  EXPECT_EQ(*store_.CompareSet("leader", "", "b"), "a");
  EXPECT_TRUE(*store_.Exists("leader"));
  EXPECT_TRUE(*store_.Delete("leader"));
  EXPECT_FALSE(*store_.Exists("leader"));
}

TEST_F(LinkStoreTest, CancelFreesAWaitingGet) {
  std::thread canceller([&] { store_.Cancel("new rank table"); });

  absl::Status status = store_.Get("never", kLong).status();

  canceller.join();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
}

TEST_F(LinkStoreTest, GivesUpAtItsDeadline) {
  EXPECT_EQ(store_.Get("never", absl::Milliseconds(20)).status().code(), absl::StatusCode::kDeadlineExceeded);
}

TEST_F(LinkStoreTest, RefusesAValueThatFitsNoLine) {
  EXPECT_EQ(store_.Set("big", std::string(contract::kLineBytesMax, 'x')).code(), absl::StatusCode::kInvalidArgument);
}

TEST(LinkStore, TheEndOfTheLinkFreesAWaitingGet) {
  ShimEnd shim;
  ShimLink link(shim.trainer_fd());
  LinkStore store(link, kLong);
  std::thread leaver([&] {
    shim.HearA<contract::StoreRequest>();
    shim.Close();
  });

  EXPECT_EQ(store.Get("key", kLong).status().code(), absl::StatusCode::kUnavailable);

  leaver.join();
}

}  // namespace
}  // namespace llmctl::trainer
