// Shims and trainers of earlier builds run on under a newer agent, on what an older agent wrote down.
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/compatibility/recorded.h"
#include "worker/contract/messages.h"
#include "worker/contract/shim_config.h"
#include "worker/contract/trainer_config.h"

namespace llmctl::contract {
namespace {

TEST(ContractCompatibility, LinesOfVersionOneAreUnderstood) {
  std::set<std::string> types;
  for (const std::string& line : ReadRecordedLines("contract_v1.jsonl")) {
    absl::StatusOr<Envelope> envelope = DecodeLine(line);

    ASSERT_TRUE(envelope.ok()) << envelope.status() << "\n" << line;
    types.insert(std::string(MessageName(envelope->message)));
  }
  EXPECT_EQ(types.size(), 22u);
}

// A peer of version one ignores what it does not know, but must find all that it demands.
TEST(ContractCompatibility, WhatVersionOneDemandsIsStillSaid) {
  for (const std::string& line : ReadRecordedLines("contract_v1.jsonl")) {
    std::string again = *EncodeLine(*DecodeLine(line));
    std::string recorded_fields = line.substr(line.find("\"body\":{") + 8);
    recorded_fields.resize(recorded_fields.size() - 2);

    EXPECT_THAT(again, testing::HasSubstr(recorded_fields));
  }
}

TEST(ContractCompatibility, GreetingOfVersionOneIsAccepted) {
  EXPECT_TRUE(CheckVersion({.version = 1, .role = "shim"}).ok());
}

TEST(ContractCompatibility, GreetingOfAnotherVersionIsRefusedAndBothAreNamed) {
  absl::Status status = CheckVersion({.version = kVersion + 2, .role = "shim", .oldest_version = kVersion + 1});

  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), testing::AllOf(testing::HasSubstr("versions 2 to 3"),
                                                            testing::HasSubstr("1 to 1")));
}

TEST(ContractCompatibility, NewerPeerThatStillSpeaksOurVersionIsAccepted) {
  EXPECT_TRUE(CheckVersion({.version = kVersion + 2, .role = "shim", .oldest_version = kVersion}).ok());
}

TEST(ContractCompatibility, ConfigurationsOfVersionOneAreRead) {
  absl::StatusOr<ShimConfig> shim = DecodeShimConfig(ReadRecorded("shim_config_v1.json"));
  absl::StatusOr<TrainerConfig> trainer = DecodeTrainerConfig(ReadRecorded("trainer_config_v1.json"));

  ASSERT_TRUE(shim.ok()) << shim.status();
  EXPECT_EQ(shim->assignment.rank_table.size(), 2u);
  ASSERT_TRUE(trainer.ok()) << trainer.status();
  EXPECT_EQ(trainer->resume_from.at(0).step, 50);
  EXPECT_FALSE(trainer->search_checkpoints.has_value());
}

TEST(ContractCompatibility, AgentReadsASettingThatItDoesNotKnowAndAShimRefusesIt) {
  std::string json = ReadRecorded("shim_config_v1.json");
  json.insert(json.find('{') + 1, "\"colour\": \"blue\",");

  EXPECT_TRUE(DecodeShimConfig(json, UnknownSettings::kIgnore).ok());
  EXPECT_THAT(std::string(DecodeShimConfig(json).status().message()), testing::HasSubstr("colour"));
}

}  // namespace
}  // namespace llmctl::contract
