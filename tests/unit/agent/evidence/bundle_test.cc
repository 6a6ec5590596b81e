#include "worker/agent/evidence/bundle.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include "absl/strings/str_cat.h"

#include "common/base/file.h"
#include "common/diagnosis/rank_view.h"
#include "worker/agent/evidence/redact.h"
#include "worker/agent/host/evidence_archive.h"
#include "worker/agent/host/shim_set.h"
#include "worker/contract/messages.h"
#include "worker/contract/phase_page.h"
#include "worker/contract/shim_config.h"

namespace llmctl::agent {
namespace {

using testing::HasSubstr;
using testing::Not;

const GenerationId kGeneration = {.job = JobId("j-1"), .attempt = 2, .generation = 3};

TEST(Redact, UsersAndPasswordsOfUrlsAreLeftOut) {
  EXPECT_EQ(WithoutUserInfo("postgres://me:p@ss@db:5432/x?a=b@c"), "postgres://(left out)@db:5432/x?a=b@c");
  EXPECT_EQ(WithoutUserInfo("a=http://u@h,https://h/@x,s3://k:v@b"),
            "a=http://(left out)@h,https://h/@x,s3://(left out)@b");
  EXPECT_EQ(WithoutUserInfo("mail me@home ://"), "mail me@home ://");
  EXPECT_EQ(RedactedEnvironment({"HTTPS_PROXY=http://u:p@proxy:3128"}), "HTTPS_PROXY=http://(left out)@proxy:3128\n");
}

TEST(Redact, ValuesOfSecretsAreLeftOutAndTheirNamesKept) {
  std::string text = RedactedEnvironment({"PATH=/bin", "HF_TOKEN=hf_abc", "AWS_SECRET_ACCESS_KEY=xyz",
                                          "wandb_api_key=k", "DB_PASSWORD=p=q", "OMP_NUM_THREADS=1", "ODD"});

  EXPECT_EQ(text,
            "AWS_SECRET_ACCESS_KEY=(left out)\nDB_PASSWORD=(left out)\nHF_TOKEN=(left out)\nODD\nOMP_NUM_THREADS=1\n"
            "PATH=/bin\nwandb_api_key=(left out)\n");
}

class Bundle : public testing::Test {
 protected:
  void SetUp() override {
    source_ = {.generation = kGeneration,
               .node = "host-a",
               .ranks = {2},
               .state_dir = absl::StrCat(testing::TempDir(), "/bundle_test_", ::getpid())};
    directory_ = absl::StrCat(source_.state_dir, "/shims/", *ShimDirectoryName(kGeneration, 2));
    std::filesystem::create_directories(directory_);
    contract::ShimConfig config = {.assignment = {.generation = kGeneration, .rank = 2, .world_size = 4},
                                   .argv = {"llm-trainer"},
                                   .environment = {"HF_TOKEN=hf_abc", "OMP_NUM_THREADS=1"}};
    Write(contract::kShimConfigFile, contract::EncodeShimConfig(config));
    Write(contract::kTrainerConfigFile, "{\"spec_digest\": \"abc\"}\n");
    Write(contract::kExitFile, *contract::EncodeLine({.message = contract::Exited{.signal = 9}}));
    Write("stderr.log", "last words\n");
    auto page = contract::PhasePage::Create(absl::StrCat(directory_, "/", contract::kPhaseFile));
    ASSERT_TRUE(page.ok());
    (*page)->Ready(40);
    (*page)->Enter(contract::Phase::kData);
  }
  void TearDown() override { std::filesystem::remove_all(source_.state_dir); }

  void Write(const std::string& name, const std::string& content) {
    ASSERT_TRUE(WriteFileAtomically(absl::StrCat(directory_, "/", name), content).ok());
  }
  static std::string Content(const std::vector<archive::File>& files, const std::string& name) {
    auto it = std::find_if(files.begin(), files.end(), [&](const archive::File& file) { return file.name == name; });
    return it == files.end() ? "(not there)" : it->content;
  }

  BundleSource source_;
  std::string directory_;
};

TEST_F(Bundle, HoldsWhatARankHasLeftAndNoSecret) {
  auto files = MakeBundle(source_, Now());

  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_THAT(Content(*files, "host.json"), HasSubstr("\"node\": \"host-a\""));
  EXPECT_THAT(Content(*files, "host.json"), HasSubstr("\"world_size\": 4"));
  EXPECT_EQ(Content(*files, "rank-2/stderr.log"), "last words\n");
  EXPECT_THAT(Content(*files, "rank-2/trainer.json"), HasSubstr("spec_digest"));
  EXPECT_THAT(Content(*files, "rank-2/environment.txt"), HasSubstr("HF_TOKEN=(left out)"));
  for (const archive::File& file : *files) EXPECT_THAT(file.content, Not(HasSubstr("hf_abc"))) << file.name;
  auto view = diagnosis::DecodeRankView(Content(*files, "rank-2/view.json"));
  ASSERT_TRUE(view.ok()) << view.status();
  EXPECT_EQ(view->rank, 2);
  EXPECT_EQ(view->node, "host-a");
  EXPECT_EQ(view->step, 40);
  EXPECT_EQ(view->where, "in the data loader");
  EXPECT_EQ(view->exit, "was killed by signal 9");
}

TEST_F(Bundle, FindsARankThatHasBeenPutAside) {
  std::filesystem::create_directories(source_.state_dir + "/ended");
  std::filesystem::rename(directory_,
                          absl::StrCat(source_.state_dir, "/ended/", *ShimDirectoryName(kGeneration, 2)));

  EXPECT_TRUE(MakeBundle(source_, Now()).ok());
  source_.ranks = {0};
  EXPECT_EQ(MakeBundle(source_, Now()).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(Bundle, LogsGiveWayWhenTheArchiveWouldBeTooBig) {
  Write("shim.log", std::string(20 << 20, 'x'));

  auto files = MakeBundle(source_, Now());

  ASSERT_TRUE(files.ok());
  EXPECT_LT(archive::WriteTar(*files, absl::UnixEpoch()).size(), size_t{9} << 20);
  EXPECT_THAT(Content(*files, "rank-2/view.json"), HasSubstr("data loader"));
}

TEST_F(Bundle, WithoutLogsToGiveUpTheLargestOfTheRestGivesWay) {
  Write("stderr.log", std::string(60 << 10, 'x'));
  Write(contract::kTrainerConfigFile, std::string(60 << 10, 'y'));
  constexpr size_t kBytesMax = 20 << 10;

  auto files = MakeBundle(source_, Now(), kBytesMax);

  ASSERT_TRUE(files.ok());
  size_t bytes = 0;
  for (const archive::File& file : *files) bytes += file.content.size();
  EXPECT_LE(bytes, kBytesMax);
  EXPECT_GT(Content(*files, "rank-2/trainer.json").size(), kBytesMax / 2);
  EXPECT_THAT(Content(*files, "rank-2/view.json"), HasSubstr("data loader"));
}

TEST_F(Bundle, ANameThatIsNoTextDoesNotCostTheArchive) {
  source_.node = "host-\xff";

  auto files = MakeBundle(source_, Now());

  ASSERT_TRUE(files.ok());
  EXPECT_THAT(Content(*files, "host.json"), HasSubstr("\"node\": \"host-"));
}

TEST_F(Bundle, IsReadPieceByPieceAndTheOldestGoFirst) {
  auto files = MakeBundle(source_, Now());
  ASSERT_TRUE(files.ok());
  for (int i = 0; i <= kEvidenceMax; ++i) {
    BundleSource other = source_;
    other.generation.generation = 100 + i;
    ASSERT_TRUE(StoreBundle(other, *files, absl::UnixEpoch()).ok());
    // Times of files are no finer than the kernel's tick.
    std::filesystem::last_write_time(
        absl::StrCat(source_.state_dir, "/evidence/", EvidenceFileName(other.generation)),
        std::filesystem::file_time_type::clock::now() - std::chrono::hours(1000 - i));
  }
  ASSERT_TRUE(StoreBundle(source_, *files, absl::UnixEpoch()).ok());

  std::string folder = source_.state_dir + "/evidence";
  std::string read;
  LogPiece piece;
  do {
    auto next = ReadEvidence(folder, kGeneration, piece.next_offset, 1000);
    ASSERT_TRUE(next.ok()) << next.status();
    piece = *next;
    read += piece.data;
  } while (!piece.at_end);
  EXPECT_EQ(*archive::ReadTar(read), *files);
  GenerationId first = kGeneration, last = kGeneration;
  first.generation = 100;
  last.generation = 100 + kEvidenceMax;
  EXPECT_EQ(ReadEvidence(folder, first, 0, 1000).status().code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(ReadEvidence(folder, last, 0, 1000).ok());
  EXPECT_FALSE(ReadEvidence(folder, {.job = JobId("../x")}, 0, 1000).ok());
}

}  // namespace
}  // namespace llmctl::agent
