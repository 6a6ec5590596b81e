#include <unistd.h>

#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include "absl/strings/str_cat.h"

#include "client/command/evidence.h"
#include "client/command/verbs.h"
#include "common/archive/tar.h"
#include "common/diagnosis/rank_view.h"
#include "tests/unit/client/fake_cluster.h"

namespace llmctl::client {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr char kStacks[] =
    "taken because: the gang has failed\n\nthread 100 llm-trainer: sleeping\n  #0  epoll_wait  libc.so.6\n\n"
    "thread 101 loader: sleeping\n  #0  futex_wait  libc.so.6\n";

std::string HostArchive(const std::string& node, const diagnosis::RankView& view, const std::string& stacks) {
  std::string folder = absl::StrCat("rank-", view.rank, "/");
  return archive::WriteTar({{"host.json", absl::StrCat("{\"node\":\"", node, "\",\"world_size\":2,\"ranks\":[",
                                                       view.rank, "]}")},
                            {folder + "view.json", diagnosis::EncodeRankView(view)},
                            {folder + "stacks.txt", stacks}},
                           absl::UnixEpoch());
}

// Attempt 1 of two ended badly: rank 1 was killed while rank 0 waited for it.
class Diagnosed : public testing::Test {
 protected:
  void SetUp() override {
    cluster_.job = MakeJob("j-1", v1::JOB_PHASE_RUNNING);
    cluster_.job.set_attempt(2);
    cluster_.job.add_ranks();
    cluster_.job.add_ranks()->set_rank(1);
    diagnosis::CollectivePosition waits = {.group = "data",
                                           .number = 31,
                                           .operation = "all_reduce",
                                           .site = "loss.sum",
                                           .count = 1,
                                           .state = "failed",
                                           .seconds = 0.5};
    diagnosis::RankView survivor = {.rank = 0, .node = "host-0", .where = "in a collective", .collectives = {waits}};
    waits.number = 30;
    waits.state = "done";
    diagnosis::RankView victim = {.rank = 1,
                                  .node = "host-1",
                                  .where = "in the data loader",
                                  .collectives = {waits},
                                  .exit = "was killed by signal 9"};
    cluster_.evidence[{1, 0}] = HostArchive("host-0", survivor, kStacks);
    cluster_.evidence[{1, 1}] = HostArchive("host-1", victim, "");
    AddEvent(1, "rank-exited", "The attempt failed (infrastructure): rank 1 on host-1 was killed by signal 9.");
    AddEvent(2, "failure", "of another attempt");
  }
  void AddEvent(int64_t attempt, const std::string& kind, const std::string& text) {
    v1::JobEvent* event = cluster_.events.add_events();
    event->set_attempt(attempt);
    event->set_kind(kind);
    event->set_text(text);
  }

  FakeCluster cluster_;
  std::ostringstream out_, err_;
  Session session_{.cluster = cluster_, .out = out_, .err = err_};
};

TEST_F(Diagnosed, TheNewestAttemptThatEndedBadlyIsToldFromItsFirstCauseToItsStacks) {
  ASSERT_EQ(*Diagnose({.job = "quickstart"}, session_), ExitCode::kOk);

  std::string text = out_.str();
  EXPECT_THAT(text, HasSubstr("attempt 1\n"));
  EXPECT_THAT(text, HasSubstr("rank 1 on host-1 was killed by signal 9."));
  EXPECT_THAT(text, Not(HasSubstr("of another attempt")));
  EXPECT_THAT(text, HasSubstr("rank 1 (host-1) never entered all_reduce #31 loss.sum"));
  EXPECT_THAT(text, HasSubstr("in the data loader"));
  EXPECT_THAT(text, HasSubstr("epoll_wait"));
  EXPECT_THAT(text, Not(HasSubstr("futex_wait"))) << "other threads only with --stacks";
  EXPECT_THAT(text, HasSubstr("rank 1 on host-1: no picture was taken"));
}

TEST_F(Diagnosed, AllStacksAreShownWhenAskedFor) {
  ASSERT_EQ(*Diagnose({.job = "quickstart", .attempt = 1, .stacks = true}, session_), ExitCode::kOk);

  EXPECT_THAT(out_.str(), HasSubstr("futex_wait"));
}

TEST_F(Diagnosed, AHostWhoseEvidenceIsGoneIsNamedAndTheRestTold) {
  cluster_.evidence.erase({1, 1});

  ASSERT_EQ(*Diagnose({.job = "quickstart", .attempt = 1}, session_), ExitCode::kOk);

  EXPECT_THAT(out_.str(), HasSubstr("missing: rank 1: no evidence is kept"));
  EXPECT_THAT(out_.str(), HasSubstr("nothing is known of rank 1"));
  EXPECT_THAT(out_.str(), HasSubstr("epoll_wait"));
}

TEST_F(Diagnosed, AnAttemptWithoutEvidenceIsNotFound) {
  EXPECT_EQ(Diagnose({.job = "quickstart", .attempt = 2}, session_).status().code(), absl::StatusCode::kNotFound);
  cluster_.evidence.clear();
  EXPECT_EQ(Diagnose({.job = "quickstart"}, session_).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(Diagnosed, JsonHoldsEverythingForScripts) {
  session_.format = Format::kJson;

  ASSERT_EQ(*Diagnose({.job = "quickstart"}, session_), ExitCode::kOk);

  nlohmann::json json = nlohmann::json::parse(out_.str());
  EXPECT_EQ(json["attempt"], 1);
  EXPECT_THAT(json["cause"].get<std::string>(), HasSubstr("killed by signal 9"));
  EXPECT_THAT(json["suspects"].get<std::vector<int>>(), ElementsAre(1));
  EXPECT_EQ(json["ranks"].size(), 2u);
  EXPECT_THAT(json["ranks"][0]["stacks"].get<std::string>(), HasSubstr("futex_wait"));
}

TEST_F(Diagnosed, ArchivesAreKeptAsTheyCame) {
  std::string folder = absl::StrCat(testing::TempDir(), "/diagnose_test_", getpid());

  ASSERT_EQ(*Diagnose({.job = "quickstart", .save = folder}, session_), ExitCode::kOk);

  EXPECT_EQ(std::filesystem::file_size(folder + "/j-1-a1-host-0.tar"), (cluster_.evidence[{1, 0}].size()));
  EXPECT_TRUE(std::filesystem::exists(folder + "/j-1-a1-host-1.tar"));
  std::filesystem::remove_all(folder);
}

TEST_F(Diagnosed, ADamagedArchiveIsSaid) {
  cluster_.evidence[{1, 0}].resize(600);

  ASSERT_EQ(*Diagnose({.job = "quickstart", .attempt = 1}, session_), ExitCode::kOk);

  EXPECT_THAT(out_.str(), HasSubstr("missing: rank 0: tar archive"));
}

TEST(MainStack, IsTheFirstThreadsOnly) {
  EXPECT_EQ(MainStack(kStacks), "thread 100 llm-trainer: sleeping\n  #0  epoll_wait  libc.so.6\n");
  EXPECT_EQ(MainStack("(not a picture)\n"), "(not a picture)\n");
}

}  // namespace
}  // namespace llmctl::client
