// Agents and coordinators of different builds meet on the worker link.
#include <memory>

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include "absl/strings/escaping.h"
#include "absl/strings/str_split.h"

#include "coordinator/rpc/link_mapping.h"
#include "llmctl/v1/worker_link.pb.h"
#include "tests/compatibility/recorded.h"
#include "worker/agent/rpc/link_mapping.h"

namespace llmctl {
namespace {

using ::testing::HasSubstr;

std::unique_ptr<google::protobuf::Message> NewMessage(const std::string& type) {
  const auto* pool = google::protobuf::DescriptorPool::generated_pool();
  const google::protobuf::Descriptor* descriptor = pool->FindMessageTypeByName("llmctl.v1." + type);
  EXPECT_NE(descriptor, nullptr) << type;
  return std::unique_ptr<google::protobuf::Message>(
      google::protobuf::MessageFactory::generated_factory()->GetPrototype(descriptor)->New());
}

// A field that was renumbered, retyped or taken away reads as something else than it was.
TEST(LinkCompatibility, MessagesOfVersionTwoMeanWhatTheyMeant) {
  for (const std::string& line : ReadRecordedLines("link_v2.txt")) {
    std::vector<std::string> parts = absl::StrSplit(line, '\t');
    ASSERT_EQ(parts.size(), 3u);
    std::unique_ptr<google::protobuf::Message> sent = NewMessage(parts[0]), meant = NewMessage(parts[0]);

    ASSERT_TRUE(sent->ParseFromString(absl::HexStringToBytes(parts[1]))) << line;
    ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(parts[2], meant.get())) << line;

    EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(*sent, *meant)) << line << "\n"
                                                                                   << sent->DebugString();
  }
}

TEST(LinkCompatibility, EveryKindOfMessageIsRecorded) {
  std::set<std::string> recorded;
  for (const std::string& line : ReadRecordedLines("link_v2.txt")) {
    std::vector<std::string> parts = absl::StrSplit(line, '\t');
    recorded.insert(parts[0] + "." + parts[2].substr(0, parts[2].find(' ')));
  }
  // Kinds that were added since belong into a file of their own build's.
  for (const char* kind : {"AgentMessage.hello", "AgentMessage.store", "AgentMessage.checkpoint_commit",
                           "CoordinatorMessage.welcome", "CoordinatorMessage.start", "CoordinatorMessage.read_log"}) {
    EXPECT_TRUE(recorded.contains(kind)) << kind;
  }
}

v1::Hello Speaking(int oldest, int newest) {
  v1::Hello hello;
  hello.set_node("host-a");
  hello.set_build_id("0.9.0+abc");
  hello.set_oldest_protocol_version(oldest);
  hello.set_protocol_version(newest);
  return hello;
}

TEST(LinkProtocol, NewestVersionThatBothSpeakIsTaken) {
  EXPECT_EQ(*rpc::AgreeOnProtocol(Speaking(2, 5), {3, 4}), 4);
  EXPECT_EQ(*rpc::AgreeOnProtocol(Speaking(1, 3), {2, 9}), 3);
  EXPECT_EQ(*rpc::AgreeOnProtocol(Speaking(0, 2), {1, 2}), 2);
}

TEST(LinkProtocol, OlderAgentIsToldToBeUpgraded) {
  absl::Status status = rpc::AgreeOnProtocol(Speaking(1, 1), {2, 3}).status();

  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()),
              testing::AllOf(HasSubstr("host host-a (build 0.9.0+abc) speaks link protocol 1"), HasSubstr("2 to 3"),
                             HasSubstr("upgrade llm-worker")));
}

TEST(LinkProtocol, OlderCoordinatorIsToBeUpgradedFirst) {
  absl::Status status = rpc::AgreeOnProtocol(Speaking(4, 5), {2, 3}).status();

  EXPECT_THAT(std::string(status.message()), testing::AllOf(HasSubstr("4 to 5"), HasSubstr("2 to 3"),
                                                            HasSubstr("upgrade llm-coordinator")));
}

TEST(LinkProtocol, AgentTurnsAwayFromACoordinatorThatDoesNotSayWhatItSpeaks) {
  absl::Status status = agent::CheckProtocol(v1::Welcome());

  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("upgrade llm-coordinator"));
}

TEST(LinkCompatibility, CapabilitiesAndFieldsThatNobodyKnowsAreTolerated) {
  v1::Hello hello = Speaking(2, 2);
  hello.set_incarnation(1);
  hello.add_capabilities("folds-origami");
  hello.add_capabilities(kSearchesCheckpoints);
  hello.GetReflection()->MutableUnknownFields(&hello)->AddVarint(1000, 7);
  v1::Hello received;
  ASSERT_TRUE(received.ParseFromString(hello.SerializeAsString()));

  absl::StatusOr<core::WorkerConnected> connected = rpc::ToModel(received);

  ASSERT_TRUE(connected.ok()) << connected.status();
  EXPECT_EQ(connected->node.capabilities, (std::set<std::string>{"folds-origami", kSearchesCheckpoints}));
}

TEST(LinkCompatibility, AgentKnowsTheNamesThatTheCoordinatorAsksFor) {
  EXPECT_TRUE(agent::AgentCapabilities().contains(kSearchesCheckpoints));
}

}  // namespace
}  // namespace llmctl
