#include "worker/data/pipeline/ordered_pipeline.h"

#include <atomic>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace llmctl::data {
namespace {

using Pipeline = OrderedPipeline<int, int>;

// Numbers 0 .. count - 1, then `end`.
Pipeline::Make Numbers(int count, absl::Status end = absl::OkStatus()) {
  return [count, end, next = std::make_shared<int>(0)]() -> absl::StatusOr<std::unique_ptr<int>> {
    if (*next < count) return std::make_unique<int>((*next)++);
    if (!end.ok()) return end;
    return std::unique_ptr<int>();
  };
}

int Square(int worker, int& number) { return number * number; }

TEST(OrderedPipeline, ResultsComeInOrderForAnyNumberOfWorkers) {
  for (int workers : {1, 2, 7}) {
    std::vector<int> results;

    absl::Status status = Pipeline(workers, 3).Run(Numbers(500), Square, [&](int result) {
      results.push_back(result);
      return absl::OkStatus();
    });

    EXPECT_TRUE(status.ok());
    ASSERT_EQ(results.size(), 500u);
    for (int i = 0; i < 500; ++i) EXPECT_EQ(results[i], i * i);
  }
}

TEST(OrderedPipeline, NeverHasMoreItemsThanAllowed) {
  std::atomic<int> alive = 0, most = 0;
  Pipeline::Make numbers = Numbers(200);

  absl::Status status = Pipeline(3, 4).Run(
      [&] {
        auto item = numbers();
        if (item.ok() && *item) most = std::max(most.load(), ++alive);
        return item;
      },
      Square,
      [&](int) {
        --alive;
        return absl::OkStatus();
      });

  EXPECT_TRUE(status.ok());
  // One more is made while there is no room for it.
  EXPECT_LE(most, 4 + 1 + 1);
}

TEST(OrderedPipeline, AnErrorOfTheMakerComesAfterWhatItMade) {
  int consumed = 0;

  absl::Status status = Pipeline(2, 4).Run(Numbers(20, absl::DataLossError("disk")), Square, [&](int) {
    ++consumed;
    return absl::OkStatus();
  });

  EXPECT_EQ(status, absl::DataLossError("disk"));
  EXPECT_EQ(consumed, 20);
}

TEST(OrderedPipeline, AnErrorOfTheConsumerStopsAll) {
  int consumed = 0;

  absl::Status status = Pipeline(2, 4).Run(Numbers(1 << 30), Square, [&](int) {
    return ++consumed == 10 ? absl::ResourceExhaustedError("full") : absl::OkStatus();
  });

  EXPECT_EQ(status, absl::ResourceExhaustedError("full"));
  EXPECT_EQ(consumed, 10);
}

TEST(OrderedPipeline, NothingMadeIsNothingConsumed) {
  EXPECT_TRUE(Pipeline(2, 4).Run(Numbers(0), Square, [](int) { return absl::InternalError("none"); }).ok());
}

}  // namespace
}  // namespace llmctl::data
