#include "worker/agent/host/loose_threads.h"

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <optional>

#include <gtest/gtest.h>

namespace llmctl::agent {
namespace {

constexpr std::chrono::seconds kDeadline(20);

// Something that happens on another thread, which may outlive whoever waits for it.
class Moment {
 public:
  void Come() const { promise_->set_value(); }
  // False at the deadline.
  bool Comes() const { return future_.wait_for(kDeadline) == std::future_status::ready; }
  bool HasCome() const { return future_.wait_for(std::chrono::seconds(0)) == std::future_status::ready; }

 private:
  std::shared_ptr<std::promise<void>> promise_ = std::make_shared<std::promise<void>>();
  std::shared_future<void> future_ = promise_->get_future().share();
};

// Work that does not end until it is let go.
struct Hang {
  Moment begun, let_go;
  std::function<void()> Job() const {
    return [copy = *this] {
      copy.begun.Come();
      EXPECT_TRUE(copy.let_go.Comes());
    };
  }
};

TEST(LooseThreads, WorkThatHangsHoldsUpOnlyItsOwnKeyAndNotTheEnd) {
  std::optional<LooseThreads> threads(2);
  Hang hang;
  Moment other, after;

  ASSERT_TRUE(threads->Add("dead", hang.Job()));
  ASSERT_TRUE(hang.begun.Comes());
  ASSERT_TRUE(threads->Add("dead", [after] { after.Come(); }));
  ASSERT_TRUE(threads->Add("alive", [other] { other.Come(); }));

  EXPECT_TRUE(other.Comes());
  threads.reset();
  EXPECT_FALSE(after.HasCome());
  hang.let_go.Come();
  EXPECT_TRUE(after.Comes()) << "what was added is done all the same";
}

TEST(LooseThreads, TheyAreNotMoreThanTheyMayBe) {
  LooseThreads threads(1);
  Hang hang;
  ASSERT_TRUE(threads.Add("dead", hang.Job()));
  ASSERT_TRUE(hang.begun.Comes());

  EXPECT_FALSE(threads.Add("another", [] {}));

  hang.let_go.Come();
  auto deadline = std::chrono::steady_clock::now() + kDeadline;
  bool added = false;
  while (!added && std::chrono::steady_clock::now() < deadline) added = threads.Add("another", [] {});
  EXPECT_TRUE(added) << "one that has ended makes room";
}

}  // namespace
}  // namespace llmctl::agent
