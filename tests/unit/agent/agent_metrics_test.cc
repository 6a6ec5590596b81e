#include "worker/agent/agent_metrics.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace llmctl::agent {
namespace {

using testing::HasSubstr;
using testing::Not;

State OneRank(RankPhase phase) {
  State state;
  state.welcomed = true;
  state.gangs[{.job = JobId("j-1"), .attempt = 1, .generation = 1}].ranks[0].phase = phase;
  return state;
}

TEST(AgentMetrics, ShowsLinkRanksAndTheFiguresOfLiveJobs) {
  AgentMetrics metrics;

  metrics.Publish(OneRank(RankPhase::kRunning), absl::ZeroDuration());
  metrics.RecordProgress(JobId("j-1"), {.step = 12, .loss = std::nan("")});
  std::string text = metrics.Render();

  EXPECT_THAT(text, HasSubstr("llm_agent_connected 1\n"));
  EXPECT_THAT(text, HasSubstr("llm_agent_ranks{phase=\"running\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("llm_trainer_step{job=\"j-1\"} 12\n"));
  EXPECT_THAT(text, HasSubstr("llm_trainer_loss{job=\"j-1\"} NaN\n"));
}

TEST(AgentMetrics, AJobsSeriesStayForAWhileAfterTheJob) {
  AgentMetrics metrics;
  metrics.RecordProgress(JobId("j-1"), {.step = 12});

  metrics.Publish(OneRank(RankPhase::kExited), absl::Seconds(10));
  metrics.Publish(State(), absl::Seconds(10) + absl::Minutes(5) - absl::Nanoseconds(1));
  EXPECT_THAT(metrics.Render(), HasSubstr("llm_trainer_step{job=\"j-1\"} 12\n"));

  metrics.Publish(State(), absl::Seconds(10) + absl::Minutes(5));
  EXPECT_THAT(metrics.Render(), Not(HasSubstr("j-1")));
}

TEST(AgentMetrics, AJobThatComesBackKeepsItsSeries) {
  AgentMetrics metrics;
  metrics.RecordProgress(JobId("j-1"), {.step = 12});

  metrics.Publish(State(), absl::ZeroDuration());
  metrics.Publish(OneRank(RankPhase::kRunning), absl::Minutes(4));
  metrics.Publish(State(), absl::Minutes(6));

  EXPECT_THAT(metrics.Render(), HasSubstr("llm_trainer_step{job=\"j-1\"} 12\n"));
}

}  // namespace
}  // namespace llmctl::agent
