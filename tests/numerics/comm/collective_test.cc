#include "worker/engine/comm/collective.h"

#include <map>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/numerics/comm/on_ranks.h"
#include "worker/engine/comm/in_process.h"
#include "worker/engine/comm/reduce.h"

namespace llmctl::engine::comm {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::unique_ptr<Communicator> OverData(std::unique_ptr<Backend> backend, Ring* ring = nullptr) {
  std::map<Axis, std::unique_ptr<Backend>> axes;
  axes[Axis::kData] = std::move(backend);
  return std::make_unique<Communicator>(std::move(axes), ring);
}

Buffer Of(std::vector<float>& values) {
  return {values.data(), static_cast<int64_t>(values.size()), DataType::kFloat32};
}

TEST(InProcessGroup, SumsInRankOrder) {
  // In fp32 (1e8 + 1) - 1e8 is 0, while 1 + (1e8 - 1e8) is 1: the order shows.
  std::vector<std::unique_ptr<Backend>> ranks = CreateInProcessGroup(3);
  std::vector<std::vector<float>> values = {{1e8f}, {1.0f}, {-1e8f}};

  OnRanks(3, [&](int rank) {
    auto communicator = OverData(std::move(ranks[rank]));
    EXPECT_TRUE(communicator->Collective("test.sum", Axis::kData, Op::kAllReduceSum, Of(values[rank])).ok());
  });

  EXPECT_THAT(values, Each(ElementsAre(0.0f)));
}

TEST(InProcessGroup, EveryOperationDoesWhatItsNameSays) {
  std::vector<std::unique_ptr<Backend>> ranks = CreateInProcessGroup(2);
  std::vector<std::vector<float>> maximum = {{1, 5}, {3, 2}};
  std::vector<std::vector<float>> scatter = {{1, 2, 3, 4}, {10, 20, 30, 40}};
  std::vector<std::vector<float>> gather = {{1, 2, 0, 0}, {0, 0, 3, 4}};
  std::vector<std::vector<float>> broadcast = {{7, 8}, {9, 10}};

  OnRanks(2, [&](int rank) {
    EXPECT_TRUE(ranks[rank]->Run(Op::kAllReduceMax, Of(maximum[rank]), 0).ok());
    EXPECT_TRUE(ranks[rank]->Run(Op::kReduceScatterSum, Of(scatter[rank]), 0).ok());
    EXPECT_TRUE(ranks[rank]->Run(Op::kAllGather, Of(gather[rank]), 0).ok());
    EXPECT_TRUE(ranks[rank]->Run(Op::kBroadcast, Of(broadcast[rank]), 1).ok());
    EXPECT_TRUE(ranks[rank]->Run(Op::kBarrier, {}, 0).ok());
  });

  EXPECT_THAT(maximum, Each(ElementsAre(3, 5)));
  EXPECT_EQ(scatter[0][0], 11);
  EXPECT_EQ(scatter[0][1], 22);
  EXPECT_EQ(scatter[1][2], 33);
  EXPECT_EQ(scatter[1][3], 44);
  EXPECT_THAT(gather, Each(ElementsAre(1, 2, 3, 4)));
  EXPECT_THAT(broadcast, Each(ElementsAre(9, 10)));
}

TEST(InProcessGroup, ADeadRankFreesTheWaitingOnes) {
  std::vector<std::unique_ptr<Backend>> ranks = CreateInProcessGroup(2);

  OnRanks(2, [&](int rank) {
    if (rank == 1) {
      ranks[1].reset();
      return;
    }
    std::vector<float> values = {1};
    EXPECT_EQ(ranks[0]->Run(Op::kAllReduceSum, Of(values), 0).code(), absl::StatusCode::kUnavailable);
  });
}

TEST(Communicator, AnAxisWithoutBackendHasSizeOneAndDoesNothing) {
  Communicator communicator({}, nullptr);
  std::vector<float> values = {3};

  absl::Status status = communicator.Collective("test.sum", Axis::kTensor, Op::kAllReduceSum, Of(values));

  EXPECT_TRUE(status.ok());
  EXPECT_EQ(communicator.size(Axis::kTensor), 1);
  EXPECT_EQ(communicator.rank(Axis::kTensor), 0);
  EXPECT_THAT(values, ElementsAre(3));
  EXPECT_TRUE(communicator.statistics().empty());
}

TEST(Communicator, CountsCallsAndBytesBySite) {
  auto communicator = OverData(std::move(CreateInProcessGroup(1)[0]));
  std::vector<float> values(10);

  ASSERT_TRUE(communicator->Collective("grad.bucket", Axis::kData, Op::kAllReduceSum, Of(values)).ok());
  ASSERT_TRUE(communicator->Collective("grad.bucket", Axis::kData, Op::kAllReduceSum, Of(values)).ok());
  ASSERT_TRUE(communicator->Collective("loss.sum", Axis::kData, Op::kBarrier, {}).ok());

  EXPECT_EQ(communicator->statistics().at("grad.bucket").calls, 2);
  EXPECT_EQ(communicator->statistics().at("grad.bucket").bytes, 80);
  EXPECT_EQ(communicator->statistics().at("loss.sum").bytes, 0);
}

TEST(Communicator, ASwitchedOffSiteLeavesItsBufferAlone) {
  std::vector<std::unique_ptr<Backend>> ranks = CreateInProcessGroup(2);
  std::vector<std::vector<float>> off = {{1}, {2}};
  std::vector<std::vector<float>> on = {{1}, {2}};

  OnRanks(2, [&](int rank) {
    auto communicator = OverData(std::move(ranks[rank]));
    communicator->SwitchOffForTest("off");
    EXPECT_TRUE(communicator->Collective("off", Axis::kData, Op::kAllReduceSum, Of(off[rank])).ok());
    EXPECT_TRUE(communicator->Collective("on", Axis::kData, Op::kAllReduceSum, Of(on[rank])).ok());
  });

  EXPECT_THAT(off[0], ElementsAre(1));
  EXPECT_THAT(off[1], ElementsAre(2));
  EXPECT_THAT(on, Each(ElementsAre(3)));
}

TEST(Communicator, AFailureNamesItsSiteAndRank) {
  auto communicator = OverData(std::move(CreateInProcessGroup(1)[0]));
  communicator->Abort();

  absl::Status status = communicator->Collective("grad.bucket", Axis::kData, Op::kBarrier, {});

  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("grad.bucket of rank 0 of 1"));
}

TEST(Communicator, TheFirstFailureIsToldWhileItsStackIsStillThere) {
  contract::PhasePage phases;
  std::map<Axis, std::unique_ptr<Backend>> axes;
  axes[Axis::kData] = std::move(CreateInProcessGroup(1)[0]);
  Communicator communicator(std::move(axes), nullptr, &phases);
  std::vector<contract::Phase> told;
  communicator.OnFirstFailure([&] { told.push_back(phases.record().phase); });
  ASSERT_TRUE(communicator.Collective("loss.sum", Axis::kData, Op::kBarrier, {}).ok());
  EXPECT_THAT(told, IsEmpty());
  communicator.Abort();

  for (int i = 0; i < 2; ++i) EXPECT_FALSE(communicator.Collective("loss.sum", Axis::kData, Op::kBarrier, {}).ok());

  EXPECT_THAT(told, ElementsAre(contract::Phase::kCollective));
  EXPECT_EQ(phases.record().phase, contract::Phase::kOther);
}

TEST(Accumulate, Bfloat16RoundsToNearestEven) {
  // 256 + 1 lies half way between 256 and 258, the neighbours in bfloat16; 258 + 1 between 258 and 260.
  std::vector<uint16_t> into = {0x4380, 0x4381};  // 256, 258
  std::vector<uint16_t> one = {0x3f80, 0x3f80};

  Accumulate(Op::kAllReduceSum, DataType::kBfloat16, into.data(), one.data(), 2);

  EXPECT_THAT(into, ElementsAre(0x4380, 0x4382));  // 256, 260
}

}  // namespace
}  // namespace llmctl::engine::comm
