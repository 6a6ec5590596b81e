#include "worker/engine/comm/gloo.h"

#include <atomic>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/instant.h"
#include "tests/numerics/comm/on_ranks.h"
#include "worker/engine/comm/in_process.h"
#include "worker/engine/comm/memory_store.h"

namespace llmctl::engine::comm {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

// Before any thread starts: see gloo.h.
const int kFlightRecorderOff = setenv("TORCH_FR_BUFFER_SIZE", "0", 1);

// Generous for a busy machine, and far below Gloo's own timeout.
constexpr absl::Duration kNoticed = absl::Seconds(20);

std::unique_ptr<Backend> Join(MemoryStore* store, int rank, int size) {
  auto backend = CreateGlooBackend(
      {.store = store, .group = "test", .rank = rank, .size = size, .fabric_address = "127.0.0.1"});
  EXPECT_TRUE(backend.ok()) << backend.status();
  return backend.ok() ? *std::move(backend) : nullptr;
}

Buffer Of(std::vector<float>& values) {
  return {values.data(), static_cast<int64_t>(values.size()), DataType::kFloat32};
}

std::vector<float> Uneven(int rank, int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    values[static_cast<size_t>(i)] = static_cast<float>((i * 7919 + rank * 104729) % 10007) / 37.0f;
  }
  return values;
}

TEST(GlooBackend, SumsAreTheSameBitsAsInProcess) {
  // 1001 elements do not divide by the sizes: the padding must not show.
  for (int size : {2, 3}) {
    MemoryStore store;
    std::vector<std::unique_ptr<Backend>> in_process = CreateInProcessGroup(size);
    std::vector<std::vector<float>> sums(static_cast<size_t>(size));
    std::vector<std::vector<float>> expected(static_cast<size_t>(size));

    OnRanks(size, [&](int rank) {
      sums[rank] = Uneven(rank, 1001);
      expected[rank] = Uneven(rank, 1001);
      auto gloo = Join(&store, rank, size);
      EXPECT_TRUE(gloo->Run(Op::kAllReduceSum, Of(sums[rank]), 0).ok());
      EXPECT_TRUE(in_process[rank]->Run(Op::kAllReduceSum, Of(expected[rank]), 0).ok());
      EXPECT_TRUE(gloo->Run(Op::kBarrier, {}, 0).ok());
      EXPECT_TRUE(in_process[rank]->Run(Op::kBarrier, {}, 0).ok());
    });

    for (int rank = 0; rank < size; ++rank) EXPECT_EQ(sums[rank], expected[rank]) << rank << " of " << size;
  }
}

TEST(GlooBackend, EveryOperationDoesWhatItsNameSays) {
  MemoryStore store;
  std::vector<std::vector<float>> maximum = {{1, 5}, {3, 2}};
  std::vector<std::vector<float>> scatter = {{1, 2, 3, 4}, {10, 20, 30, 40}};
  std::vector<std::vector<float>> gather = {{1, 2, 0, 0}, {0, 0, 3, 4}};
  std::vector<std::vector<float>> broadcast = {{7, 8}, {9, 10}};

  OnRanks(2, [&](int rank) {
    auto gloo = Join(&store, rank, 2);
    EXPECT_TRUE(gloo->Run(Op::kAllReduceMax, Of(maximum[rank]), 0).ok());
    EXPECT_TRUE(gloo->Run(Op::kReduceScatterSum, Of(scatter[rank]), 0).ok());
    EXPECT_TRUE(gloo->Run(Op::kAllGather, Of(gather[rank]), 0).ok());
    EXPECT_TRUE(gloo->Run(Op::kBroadcast, Of(broadcast[rank]), 1).ok());
    EXPECT_TRUE(gloo->Run(Op::kBarrier, {}, 0).ok());
  });

  EXPECT_THAT(maximum, Each(ElementsAre(3, 5)));
  EXPECT_EQ(scatter[0][1], 22);
  EXPECT_EQ(scatter[1][2], 33);
  EXPECT_THAT(gather, Each(ElementsAre(1, 2, 3, 4)));
  EXPECT_THAT(broadcast, Each(ElementsAre(9, 10)));
}

TEST(GlooBackend, AbortFreesAWaitingCollective) {
  // Goal: a peer that is alive but does not come must not hold anybody until Gloo's timeout of half an hour.
  MemoryStore store;
  std::atomic<bool> released = false;

  OnRanks(2, [&](int rank) {
    auto gloo = Join(&store, rank, 2);
    std::vector<float> values(1000);
    EXPECT_TRUE(gloo->Run(Op::kAllReduceSum, Of(values), 0).ok());
    if (rank == 1) {
      while (!released) std::this_thread::yield();
      return;
    }
    std::thread aborter([&] { gloo->Abort(); });
    absl::Duration begun = Now().monotonic;
    absl::Status status = gloo->Run(Op::kAllReduceSum, Of(values), 0);
    EXPECT_LT(Now().monotonic - begun, kNoticed);
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
    aborter.join();
    released = true;
  });
}

TEST(GlooBackend, ADeadPeerIsNoticedByAll) {
  // Rank 2 goes without a word, as a killed process does: its sockets close. Ranks 0 and 1 may wait for each
  // other rather than for rank 2, so the first to notice must tell.
  MemoryStore store;

  OnRanks(3, [&](int rank) {
    auto gloo = Join(&store, rank, 3);
    std::vector<float> values(1000);
    EXPECT_TRUE(gloo->Run(Op::kAllReduceSum, Of(values), 0).ok());
    if (rank == 2) return;
    absl::Duration begun = Now().monotonic;
    absl::Status status = absl::OkStatus();
    while (status.ok()) status = gloo->Run(Op::kAllReduceSum, Of(values), 0);
    EXPECT_LT(Now().monotonic - begun, kNoticed);
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  });
}

TEST(CreateGlooBackend, ACancelledStoreEndsTheFormingOfAGroup) {
  MemoryStore store;
  std::thread canceller([&] { store.Cancel("new rank table"); });

  auto backend = CreateGlooBackend(
      {.store = &store, .group = "test", .rank = 0, .size = 2, .fabric_address = "127.0.0.1"});

  canceller.join();
  EXPECT_EQ(backend.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(backend.status().message()), testing::HasSubstr("new rank table"));
}

}  // namespace
}  // namespace llmctl::engine::comm
