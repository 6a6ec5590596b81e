#include "worker/trainer/shim_link.h"

#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/trainer/shim_end.h"

namespace llmctl::trainer {
namespace {

constexpr absl::Duration kLong = absl::Seconds(20);

TEST(ShimLink, SaysHelloFirstAndNumbersItsLines) {
  ShimEnd shim;
  ShimLink link(shim.trainer_fd());

  link.Send(contract::Ready{.step = 7});

  auto hello = shim.Hear();
  ASSERT_TRUE(hello.has_value());
  EXPECT_EQ(hello->seq, 1);
  EXPECT_EQ(std::get<contract::Hello>(hello->message).role, "trainer");
  auto ready = shim.Hear();
  ASSERT_TRUE(ready.has_value());
  EXPECT_EQ(ready->seq, 2);
  EXPECT_EQ(std::get<contract::Ready>(ready->message).step, 7);
}

TEST(ShimLink, DeliversWhatComesAfterTheHello) {
  ShimEnd shim;
  ShimLink link(shim.trainer_fd());

  shim.SayHello();
  shim.Say(contract::CheckpointRequest{});

  ASSERT_TRUE(link.Wait(kLong));
  std::vector<contract::Message> messages = link.Take();
  ASSERT_EQ(messages.size(), 1u);
  EXPECT_TRUE(std::holds_alternative<contract::CheckpointRequest>(messages[0]));
  EXPECT_FALSE(link.ended());
}

TEST(ShimLink, AShimThatDoesNotReadCostsOnlyOldProgress) {
  // Goal: sending never blocks, whatever the other side does. The socket's buffer takes some; far more is sent.
  ShimEnd shim;
  ShimLink link(shim.trainer_fd());
  const int64_t sent = 20000;
  link.Send(contract::Ready{.step = 0});
  for (int64_t step = 1; step <= sent; ++step) link.Send(contract::Progress{.step = step});
  link.Send(contract::Fatal{.failure_class = "user", .message = "the end"});

  std::vector<int64_t> steps;
  bool ready = false;
  bool fatal = false;
  while (!fatal) {
    std::optional<contract::Envelope> heard = shim.Hear();
    ASSERT_TRUE(heard.has_value());
    if (const auto* progress = std::get_if<contract::Progress>(&heard->message)) steps.push_back(progress->step);
    ready |= std::holds_alternative<contract::Ready>(heard->message);
    fatal = std::holds_alternative<contract::Fatal>(heard->message);
  }

  EXPECT_TRUE(ready);
  EXPECT_LT(steps.size(), static_cast<size_t>(sent)) << "nothing was dropped: the test did not test";
  EXPECT_TRUE(std::is_sorted(steps.begin(), steps.end()));
  EXPECT_EQ(steps.back(), sent) << "the newest progress must not be dropped";
}

TEST(ShimLink, EndsWhenTheShimGoes) {
  ShimEnd shim;
  ShimLink link(shim.trainer_fd());
  std::atomic<int> urgent = 0;
  ShimLink::UrgentHandler handler(link, [&] { ++urgent; });

  shim.SayHello();
  shim.Close();

  ASSERT_TRUE(link.Wait(kLong));
  while (urgent == 0) std::this_thread::yield();
  EXPECT_TRUE(link.ended());
  EXPECT_EQ(link.end_reason(), "the shim closed it");
}

TEST(ShimLink, StopIsUrgentAlsoForAHandlerThatComesLate) {
  ShimEnd shim;
  ShimLink link(shim.trainer_fd());
  shim.SayHello();
  shim.Say(contract::Stop{.reason = "cancelled"});
  ASSERT_TRUE(link.Wait(kLong));

  std::atomic<int> urgent = 0;
  ShimLink::UrgentHandler handler(link, [&] { ++urgent; });

  while (urgent == 0) std::this_thread::yield();
  EXPECT_FALSE(link.ended());
}

TEST(ShimLink, AHandlerIsGoneWithItsScopeAlsoWhenThatEndsByAnException) {
  ShimEnd shim;
  ShimLink link(shim.trainer_fd());
  std::atomic<int> urgent = 0;
  try {
    ShimLink::UrgentHandler handler(link, [&] { ++urgent; });
    throw std::runtime_error("of a library");
  } catch (const std::runtime_error&) {
  }

  shim.SayHello();
  shim.Close();

  ASSERT_TRUE(link.Wait(kLong));
  while (!link.ended()) std::this_thread::yield();
  EXPECT_EQ(urgent, 0);
}

TEST(ShimLink, ALineThatBreaksTheContractEndsIt) {
  ShimEnd shim;
  ShimLink link(shim.trainer_fd());
  shim.SayHello();

  shim.SayRaw("{\"seq\":2,\"type\":\"yield\",\"body\":{}}\n");

  ASSERT_TRUE(link.Wait(kLong));
  EXPECT_TRUE(link.ended());
  EXPECT_NE(link.end_reason().find("yield"), std::string::npos) << link.end_reason();
}

TEST(ShimLink, RefusesAPeerOfAnotherVersion) {
  ShimEnd shim;
  ShimLink link(shim.trainer_fd());

  shim.Say(contract::Hello{.version = contract::kVersion + 1, .role = "shim"});

  ASSERT_TRUE(link.Wait(kLong));
  EXPECT_TRUE(link.ended());
}

TEST(ShimLink, ARepeatedAssignmentIsNoNewOne) {
  ShimEnd shim;
  ShimLink link(shim.trainer_fd());
  contract::Assignment first = {.generation = {JobId("j-1"), 1, 4}, .world_size = 1};
  shim.SayHello();

  shim.Say(first);
  shim.Say(first);
  shim.Say(contract::CheckpointRequest{});

  std::vector<contract::Message> messages;
  while (messages.empty() || !std::holds_alternative<contract::CheckpointRequest>(messages.back())) {
    ASSERT_TRUE(link.Wait(kLong));
    for (contract::Message& message : link.Take()) messages.push_back(std::move(message));
  }
  EXPECT_EQ(messages.size(), 2u);
}

}  // namespace
}  // namespace llmctl::trainer
