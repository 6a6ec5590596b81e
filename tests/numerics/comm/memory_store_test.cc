#include "worker/engine/comm/memory_store.h"

#include <thread>

#include <gtest/gtest.h>

namespace llmctl::engine::comm {
namespace {

TEST(MemoryStore, GetWaitsForTheKey) {
  MemoryStore store;
  std::thread setter([&] { EXPECT_TRUE(store.Set("key", std::string("a\0b", 3)).ok()); });

  auto value = store.Get("key", absl::Seconds(10));

  setter.join();
  ASSERT_TRUE(value.ok()) << value.status();
  EXPECT_EQ(*value, std::string("a\0b", 3));
}

TEST(MemoryStore, GetGivesUpAtItsDeadline) {
  MemoryStore store;

  EXPECT_EQ(store.Get("key", absl::Milliseconds(1)).status().code(), absl::StatusCode::kDeadlineExceeded);
}

TEST(MemoryStore, CancelFreesAWaitingGet) {
  MemoryStore store;
  std::thread canceller([&] { store.Cancel("new rank table"); });

  absl::Status status = store.Get("key", absl::InfiniteDuration()).status();

  canceller.join();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_FALSE(store.Set("key", "late").ok());
}

TEST(MemoryStore, AddsComparesAndDeletes) {
  MemoryStore store;

  EXPECT_EQ(*store.Add("n", 3), 3);
  EXPECT_EQ(*store.Add("n", -1), 2);
  EXPECT_EQ(*store.CompareSet("leader", "", "rank 1"), "rank 1");
  EXPECT_EQ(*store.CompareSet("leader", "", "rank 2"), "rank 1");
  EXPECT_EQ(*store.CompareSet("leader", "rank 1", "rank 2"), "rank 2");
  EXPECT_TRUE(*store.Delete("leader"));
  EXPECT_FALSE(*store.Delete("leader"));
  EXPECT_FALSE(*store.Exists("leader"));
}

}  // namespace
}  // namespace llmctl::engine::comm
