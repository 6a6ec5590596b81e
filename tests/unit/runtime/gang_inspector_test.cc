#include "coordinator/runtime/gang_inspector.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "coordinator/runtime/hang_verdict.h"
#include "tests/unit/runtime/silent_link.h"

namespace llmctl::runtime {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class AskedLink final : public SilentLink {
 public:
  void Inspect(const InspectionQuery& query) override { asked.push_back(query); }

  std::vector<InspectionQuery> asked;
};

Instant At(double seconds) { return {absl::Seconds(seconds), absl::UnixEpoch() + absl::Seconds(seconds)}; }

class Inspection : public testing::Test {
 protected:
  void SetUp() override {
    for (int i = 0; i < 2; ++i) {
      agents_.push_back(std::make_shared<AskedLink>());
      links_.Add(i + 1, agents_.back());
      links_.Admit(hosts_[i], i + 1);
    }
    inspector_.Inspect({.generation = {JobId("j-1"), 1, 1}, .reason = "no progress"}, {hosts_.begin(), hosts_.end()},
                       At(0), [this](std::vector<diagnosis::RankView> views) { answers_.push_back(views); });
    ASSERT_THAT(agents_[0]->asked, SizeIs(1));
    request_ = agents_[0]->asked[0].request_id;
  }

  const std::vector<NodeId> hosts_ = {NodeId("host-0"), NodeId("host-1")};
  HostLinks links_;
  GangInspector inspector_{links_, absl::Seconds(3)};
  std::vector<std::shared_ptr<AskedLink>> agents_;
  std::vector<std::vector<diagnosis::RankView>> answers_;
  int64_t request_ = 0;
};

TEST_F(Inspection, EndsOnceWhenAllHostsHaveAnswered) {
  EXPECT_EQ(agents_[1]->asked.at(0).reason, "no progress");
  inspector_.Deliver(hosts_[0], request_, {{.rank = 0}});
  EXPECT_THAT(answers_, IsEmpty());

  inspector_.Deliver(hosts_[0], request_, {{.rank = 0}});  // repeated
  inspector_.Deliver(hosts_[1], request_, {{.rank = 1}, {.rank = 2}});
  inspector_.Deliver(hosts_[1], request_, {{.rank = 1}});
  inspector_.Expire(At(100));

  ASSERT_THAT(answers_, SizeIs(1));
  EXPECT_THAT(answers_[0], SizeIs(3));
}

TEST_F(Inspection, EndsWithoutTheHostThatStaysSilent) {
  inspector_.Deliver(hosts_[0], request_, {{.rank = 0}});
  inspector_.Expire(At(2.9));
  EXPECT_THAT(answers_, IsEmpty());

  inspector_.Expire(At(3));

  ASSERT_THAT(answers_, SizeIs(1));
  EXPECT_THAT(answers_[0], SizeIs(1));
}

TEST_F(Inspection, DoesNotTakeAStallOfTheCoordinatorForSilence) {
  inspector_.Extend(absl::Seconds(30));
  inspector_.Expire(At(32.9));
  EXPECT_THAT(answers_, IsEmpty());

  inspector_.Expire(At(33));

  EXPECT_THAT(answers_, SizeIs(1));
}

TEST(ConfirmHang, TellsTheCulpritAndByWhatMeasure) {
  HangWatch::Suspicion suspicion = {.step = 7, .text = "no progress after step 7 for 61.0 s, 60.0 s are allowed"};
  diagnosis::RankView silent = {.rank = 0, .node = "host-0", .process = "S", .step = 7};

  std::optional<diagnosis::Verdict> verdict = ConfirmHang(suspicion, {silent}, 2);

  ASSERT_TRUE(verdict.has_value());
  EXPECT_THAT(verdict->text, HasSubstr("rank 0 (host-0)"));
  EXPECT_THAT(verdict->text, HasSubstr("nothing is known of rank 1"));
  EXPECT_THAT(verdict->text, HasSubstr("60.0 s are allowed"));
  EXPECT_THAT(verdict->suspects, ElementsAre(0, 1));
}

TEST(ConfirmHang, ARankThatHasGotOnMeansThatThereIsNone) {
  diagnosis::RankView slow = {.rank = 0, .node = "host-0", .process = "R", .step = 8};

  EXPECT_FALSE(ConfirmHang({.step = 7}, {slow}, 1).has_value());
}

TEST(ConfirmHang, AValidationOrCheckpointThatHasJustEndedIsNoHang) {
  HangWatch::Suspicion suspicion = {.step = 7, .activities = {{0, "validation"}, {1, "training"}}};
  diagnosis::RankView ended = {.rank = 0, .node = "host-0", .process = "R", .activity = "training", .step = 7};
  diagnosis::RankView goes_on = ended;
  goes_on.activity = "validation";
  diagnosis::RankView gone = ended;
  gone.activity.clear();

  EXPECT_FALSE(ConfirmHang(suspicion, {ended}, 1).has_value());
  EXPECT_TRUE(ConfirmHang(suspicion, {goes_on}, 1).has_value());
  EXPECT_TRUE(ConfirmHang(suspicion, {gone}, 1).has_value()) << "nothing is known of it";
}

}  // namespace
}  // namespace llmctl::runtime
