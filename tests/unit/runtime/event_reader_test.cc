#include "coordinator/runtime/event_reader.h"

#include <chrono>
#include <future>
#include <memory>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/runtime/gated_store.h"

namespace llmctl::runtime {
namespace {

using Events = absl::StatusOr<std::vector<JobEventRecord>>;

constexpr std::chrono::seconds kDeadline{20};

std::future<Events> Read(EventReader& reader) {
  auto promise = std::make_shared<std::promise<Events>>();
  reader.Ask({.job = JobId("j-1"), .after = 0, .limit = 10},
             [promise](Events events) { promise->set_value(std::move(events)); });
  return promise->get_future();
}

absl::Status Await(std::future<Events> events) {
  if (events.wait_for(kDeadline) != std::future_status::ready) return absl::DeadlineExceededError("no answer");
  return events.get().status();
}

TEST(EventReader, WhoAsksDoesNotWaitForTheDisk) {
  store::GatedStore store;
  EventReader reader(store, /*waiting_max=*/2);
  store.CloseGate();

  std::future<Events> under_way = Read(reader);
  store.AwaitReads(1);
  std::future<Events> first = Read(reader), second = Read(reader), third = Read(reader);

  EXPECT_EQ(Await(std::move(third)).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(first.wait_for(std::chrono::seconds(0)), std::future_status::ready);
  store.OpenGate();
  for (std::future<Events>* events : {&under_way, &first, &second}) EXPECT_TRUE(Await(std::move(*events)).ok());
}

TEST(EventReader, OnceClosedItAnswersWhoWaitsAndWhoComes) {
  store::GatedStore store;
  EventReader reader(store, /*waiting_max=*/10);
  store.CloseGate();
  std::future<Events> under_way = Read(reader);
  store.AwaitReads(1);
  std::future<Events> waits = Read(reader);

  reader.Close(absl::UnavailableError("stopping"));

  EXPECT_EQ(Await(std::move(waits)).code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(Await(Read(reader)).code(), absl::StatusCode::kUnavailable);
  store.OpenGate();
  EXPECT_TRUE(Await(std::move(under_way)).ok());
}

}  // namespace
}  // namespace llmctl::runtime
