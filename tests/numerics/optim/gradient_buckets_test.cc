#include "worker/engine/optim/gradient_buckets.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/numerics/comm/on_ranks.h"
#include "tests/numerics/optim/flat_model.h"
#include "worker/engine/comm/in_process.h"

namespace llmctl::engine {
namespace {

using comm::Axis;
using comm::Communicator;
using ::testing::Each;

std::unique_ptr<Communicator> OverData(std::unique_ptr<comm::Backend> backend) {
  std::map<Axis, std::unique_ptr<comm::Backend>> axes;
  axes[Axis::kData] = std::move(backend);
  return std::make_unique<Communicator>(std::move(axes), nullptr);
}

std::vector<float> Gradients(FlatModel& model) {
  return std::vector<float>(model.gradients(), model.gradients() + model.flat_size());
}

TEST(GradientBuckets, SumEveryElementOnce) {
  std::vector<std::unique_ptr<comm::Backend>> ranks = comm::CreateInProcessGroup(3);
  comm::OnRanks(3, [&](int rank) {
    auto communicator = OverData(std::move(ranks[rank]));
    FlatModel model({100, 7, 300, 16, 40});
    std::fill_n(model.gradients(), model.flat_size(), static_cast<float>(rank + 1));
    GradientBuckets buckets(model, 128, *communicator);

    buckets.Begin();
    model.ForwardBackward({}, 1, &buckets);

    EXPECT_TRUE(buckets.Finish().ok());
    EXPECT_THAT(Gradients(model), Each(6.0f));
    EXPECT_EQ(communicator->statistics().at("grad.bucket").calls, buckets.bucket_count());
    EXPECT_EQ(communicator->statistics().at("grad.bucket").bytes, model.flat_size() * 4);
  });
}

TEST(GradientBuckets, HoldWholeParametersUpToTheirSize) {
  Communicator alone({}, nullptr);
  FlatModel model({64, 64, 64, 64});

  EXPECT_EQ(GradientBuckets(model, 64, alone).bucket_count(), 4);
  EXPECT_EQ(GradientBuckets(model, 65, alone).bucket_count(), 2);
  EXPECT_EQ(GradientBuckets(model, 1 << 20, alone).bucket_count(), 1);
}

TEST(GradientBuckets, AreSummedAsSoonAsTheyAreFull) {
  auto communicator = OverData(std::move(comm::CreateInProcessGroup(1)[0]));
  FlatModel model({64, 64, 64});
  GradientBuckets buckets(model, 64, *communicator);
  buckets.Begin();

  buckets.GradientReady(model.parameters()[2]);

  EXPECT_EQ(communicator->statistics().at("grad.bucket").calls, 1);
}

TEST(GradientBuckets, ReportTheFirstError) {
  auto communicator = OverData(std::move(comm::CreateInProcessGroup(1)[0]));
  communicator->Abort();
  FlatModel model({64, 64, 64});
  GradientBuckets buckets(model, 64, *communicator);

  buckets.Begin();
  model.ForwardBackward({}, 1, &buckets);

  EXPECT_EQ(buckets.Finish().code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace llmctl::engine
