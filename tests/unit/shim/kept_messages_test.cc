#include "worker/shim/kept_messages.h"

#include <string>
#include <variant>

#include <gtest/gtest.h>

namespace llmctl::shim {
namespace {

using contract::CheckpointCommit;
using contract::CheckpointCommitReply;
using contract::Progress;
using contract::StoreReply;
using contract::StoreRequest;

TEST(KeptMessages, OnlyTheNewestProgressIsKept) {
  KeptMessages kept;

  for (int64_t step = 1; step <= 1000; ++step) EXPECT_TRUE(kept.Keep(Progress{.step = step}));

  EXPECT_EQ(kept.newest_progress()->step, 1000);
  EXPECT_EQ(kept.All().size(), 64u);
  EXPECT_EQ(std::get<Progress>(kept.All().front()).step, 937);
}

TEST(KeptMessages, ARequestIsKeptUntilItsFirstReply) {
  KeptMessages kept;
  kept.Keep(CheckpointCommit{.request_id = 1});
  kept.Keep(StoreRequest{.request_id = 1});

  EXPECT_TRUE(kept.TakeReply(CheckpointCommitReply{.request_id = 1}));
  EXPECT_FALSE(kept.TakeReply(CheckpointCommitReply{.request_id = 1}));
  EXPECT_FALSE(kept.has_unanswered_commit());
  EXPECT_EQ(kept.All().size(), 1u);
  EXPECT_TRUE(kept.TakeReply(StoreReply{.request_id = 1}));
  EXPECT_FALSE(kept.TakeReply(StoreReply{.request_id = 1}));
  EXPECT_TRUE(kept.All().empty());
}

TEST(KeptMessages, WhatIsNoReplyAlwaysPasses) {
  EXPECT_TRUE(KeptMessages().TakeReply(contract::Yield{}));
}

TEST(KeptMessages, UnansweredRequestsAreBoundedAndAnswersMakeRoom) {
  KeptMessages kept;
  const std::string value(40000, 'x');
  int64_t id = 1;
  while (kept.Keep(StoreRequest{.request_id = id, .value = value})) ASSERT_LT(++id, 1000);

  EXPECT_TRUE(kept.TakeReply(StoreReply{.request_id = 1}));

  EXPECT_TRUE(kept.Keep(StoreRequest{.request_id = id, .value = value}));
  EXPECT_FALSE(kept.Keep(StoreRequest{.request_id = id + 1, .value = value}));
}

}  // namespace
}  // namespace llmctl::shim
