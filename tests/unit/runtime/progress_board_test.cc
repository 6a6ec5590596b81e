#include "coordinator/runtime/progress_board.h"

#include <cmath>

#include <gtest/gtest.h>

namespace llmctl::runtime {
namespace {

GenerationId Generation(int64_t generation) { return {JobId("j-1"), 1, generation}; }
Instant At(double seconds) { return {absl::Seconds(seconds), absl::UnixEpoch()}; }

TEST(ProgressBoard, TimeLeftFollowsRecentSteps) {
  ProgressBoard board;
  for (int step = 1; step <= 100; ++step) {
    board.Report(Generation(1), {.step = step, .steps = 200, .step_seconds = step <= 50 ? 10.0 : 2.0}, At(step));
  }

  EXPECT_DOUBLE_EQ(board.Newest(JobId("j-1"))->eta_seconds, 200.0);
}

TEST(ProgressBoard, ReportOfAnOlderGenerationIsDropped) {
  ProgressBoard board;
  board.Report(Generation(2), {.step = 40}, At(0));

  board.Report(Generation(1), {.step = 90}, At(1));

  EXPECT_EQ(board.Newest(JobId("j-1"))->step, 40);
}

TEST(ProgressBoard, ValidationLossStaysUntilTheNextOne) {
  ProgressBoard board;
  board.Report(Generation(1), {.step = 1}, At(0));
  EXPECT_TRUE(std::isnan(board.Newest(JobId("j-1"))->validation_loss));

  board.Report(Generation(1), {.step = 2, .validation_loss = 3.5, .validation_step = 2}, At(1));
  board.Report(Generation(1), {.step = 3}, At(2));

  EXPECT_EQ(board.Newest(JobId("j-1"))->validation_loss, 3.5);
  EXPECT_EQ(board.Newest(JobId("j-1"))->validation_step, 2);
}

TEST(ProgressBoard, WatchersAreToldTwiceASecondAtMost) {
  ProgressBoard board;
  int told = 0;
  for (int i = 0; i < 100; ++i) told += board.Report(Generation(1), {.step = i}, At(i / 10.0));

  EXPECT_EQ(told, 20);
}

}  // namespace
}  // namespace llmctl::runtime
