// Probes of shared folders, and the roots that paths must lie below.
#include "worker/agent/host/probe.h"

#include <unistd.h>

#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include "absl/strings/str_cat.h"

#include "common/base/digest.h"
#include "common/base/file.h"
#include "worker/agent/host/allowed_roots.h"

namespace llmctl::agent {
namespace {

using testing::HasSubstr;

class ProbeTest : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(root_ + "/data");
    ASSERT_TRUE(WriteFileAtomically(root_ + "/data/manifest.json", "{}").ok());
  }
  void TearDown() override { std::filesystem::remove_all(root_); }
  ProbeOrdered Order(bool write) {
    return {.checkpoint_directory = root_ + "/run/checkpoints", .dataset = root_ + "/data", .nonce = "n-1",
            .write = write};
  }

  const std::string root_ = absl::StrCat(testing::TempDir(), "/probe_test_", ::getpid());
  const AllowedRoots anywhere_{""};
};

TEST_F(ProbeTest, WhatOneHostWroteAnotherReadsAndBothSeeTheDataset) {
  ProbeResult first = ProbeFiles(Order(true), anywhere_);
  ProbeResult second = ProbeFiles(Order(false), anywhere_);

  EXPECT_TRUE(first.ok) << first.error;
  EXPECT_TRUE(second.ok) << second.error;
  EXPECT_EQ(first.dataset_digest, Sha256("{}"));
  EXPECT_EQ(second.dataset_digest, first.dataset_digest);
  EXPECT_EQ(second.nonce, "n-1") << "an answer names the probe that it answers";
  RemoveProbeFile(root_ + "/run/checkpoints", "n-1");
  EXPECT_TRUE(std::filesystem::is_empty(root_ + "/run/checkpoints"));
}

TEST_F(ProbeTest, AHostThatDoesNotSeeTheNonceSaysThatTheFolderIsNotShared) {
  ProbeResult result = ProbeFiles(Order(false), anywhere_);

  EXPECT_FALSE(result.ok);
  EXPECT_THAT(result.error, HasSubstr("does not see what the first host wrote"));
}

TEST_F(ProbeTest, OtherContentIsNoticed) {
  ASSERT_TRUE(ProbeFiles(Order(true), anywhere_).ok);
  ASSERT_TRUE(WriteFileAtomically(root_ + "/run/checkpoints/.llmctl-probe-n-1", "n-2").ok());

  EXPECT_THAT(ProbeFiles(Order(false), anywhere_).error, HasSubstr("sees other content"));
}

// Two clusters number their jobs alike; the second must not mix its checkpoints into the first one's.
TEST_F(ProbeTest, AFirstStartRefusesAFolderWithAnotherJobsCheckpoints) {
  std::filesystem::create_directories(root_ + "/run/checkpoints/j-1/step-00000100-a1-g1");
  ProbeOrdered first_start = Order(true);
  first_start.generation = {JobId("j-1"), 1, 1};
  ProbeOrdered restart = Order(true);
  restart.generation = {JobId("j-1"), 2, 2};

  EXPECT_THAT(ProbeFiles(first_start, anywhere_).error, HasSubstr("j-1 holds checkpoints of another job"));
  EXPECT_TRUE(ProbeFiles(restart, anywhere_).ok);
}

TEST_F(ProbeTest, AMissingDatasetIsNamed) {
  ProbeOrdered order = Order(true);
  order.dataset = root_ + "/none";

  ProbeResult result = ProbeFiles(order, anywhere_);

  EXPECT_FALSE(result.ok);
  EXPECT_THAT(result.error, HasSubstr("data.dataset: no dataset there"));
  EXPECT_THAT(result.error, HasSubstr("/none/manifest.json"));
}

TEST_F(ProbeTest, ADiskThatFailsIsNotTheJobsFaultAWrongPathIs) {
  ASSERT_TRUE(ProbeFiles(Order(true), anywhere_).ok);
  EXPECT_FALSE(ProbeFiles({.dataset = root_ + "/none", .nonce = "n-1", .write = true}, anywhere_).infrastructure);

  // Nothing is mapped at its start, which is an input/output error.
  std::filesystem::remove(root_ + "/data/manifest.json");
  std::filesystem::create_symlink("/proc/self/mem", root_ + "/data/manifest.json");
  ProbeResult failing = ProbeFiles(Order(true), anywhere_);
  EXPECT_THAT(failing.error, HasSubstr("Input/output error"));
  EXPECT_TRUE(failing.infrastructure);

  std::filesystem::remove(root_ + "/data/manifest.json");
  std::filesystem::create_directory(root_ + "/data/manifest.json");
  ProbeResult wrong = ProbeFiles(Order(true), anywhere_);
  EXPECT_FALSE(wrong.ok);
  EXPECT_FALSE(wrong.infrastructure) << wrong.error;
}

TEST_F(ProbeTest, ANonceCannotLeaveTheFolder) {
  ProbeOrdered order = Order(true);
  order.nonce = "../../n";

  EXPECT_FALSE(ProbeFiles(order, anywhere_).ok);
}

TEST_F(ProbeTest, PathsMustLieBelowARoot) {
  AllowedRoots roots(root_ + "/data:" + root_ + "/run");

  EXPECT_TRUE(ProbeFiles(Order(true), roots).ok);
  EXPECT_TRUE(roots.Check(root_ + "/run").ok());
  EXPECT_TRUE(roots.Check(root_ + "/run/not/yet/there").ok());
  EXPECT_EQ(roots.Check(root_ + "/running").code(), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(roots.Check(root_ + "/run/../other").code(), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(roots.Check("run/x").code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(ProbeFiles(Order(true), AllowedRoots(root_ + "/data")).error, HasSubstr("checkpoint.directory: path"));
}

TEST_F(ProbeTest, ALinkOutOfARootIsFollowed) {
  std::filesystem::create_directories(root_ + "/run");
  std::filesystem::create_directory_symlink("/etc", root_ + "/run/link");

  EXPECT_EQ(AllowedRoots(root_ + "/run").Check(root_ + "/run/link/x").code(), absl::StatusCode::kPermissionDenied);
}

}  // namespace
}  // namespace llmctl::agent
