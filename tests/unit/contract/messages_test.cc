#include "worker/contract/messages.h"

#include <cmath>
#include <limits>
#include <string>
#include <variant>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include "absl/strings/str_cat.h"

namespace llmctl::contract {
namespace {

using testing::HasSubstr;

const GenerationId kGeneration = {.job = JobId("j-17"), .attempt = 2, .generation = 5};
const std::string kBytes("\0\xff\n\"\\ \x80", 8);

// Every message type, each field away from its default. The line is what goes over the wire: a change of it
// breaks running shims of the previous version.
const std::vector<std::pair<Message, std::string>> kMessages = {
    {Hello{.role = "trainer", .generation = kGeneration, .rank = 3},
     R"({"seq":9,"type":"hello","body":{"version":1,"role":"trainer","generation":{"job":"j-17","attempt":2,"generation":5},"rank":3}})"},
    {Assignment{.generation = kGeneration,
                .rank = 1,
                .world_size = 2,
                .device = 4,
                .rank_table = {{.rank = 0, .node = "a", .fabric_address = "10.0.0.1"}}},
     R"({"seq":9,"type":"assignment","body":{"generation":{"job":"j-17","attempt":2,"generation":5},"rank":1,"world_size":2,"device":4,"rank_table":[{"rank":0,"node":"a","fabric_address":"10.0.0.1"}]}})"},
    {StoreReply{.request_id = 7, .found = true, .value = kBytes, .number = -4, .error = "over"},
     R"({"seq":9,"type":"store_reply","body":{"request_id":7,"found":true,"value":"AP8KIlwggAA=","number":-4,"error":"over"}})"},
    {CheckpointRequest{}, R"({"seq":9,"type":"checkpoint_request","body":{}})"},
    {CheckpointCommitReply{.request_id = 8, .committed = true, .error = "e", .removable_paths = {"/a", "/b"}},
     R"({"seq":9,"type":"checkpoint_commit_reply","body":{"request_id":8,"committed":true,"error":"e","removable_paths":["/a","/b"]}})"},
    {Yield{.reason = "preempted", .deadline_seconds = 2.5},
     R"({"seq":9,"type":"yield","body":{"reason":"preempted","deadline_seconds":2.5}})"},
    {Update{.settings_json = "{}"}, R"({"seq":9,"type":"update","body":{"settings_json":"{}"}})"},
    {Stop{.reason = "cancelled"}, R"({"seq":9,"type":"stop","body":{"reason":"cancelled"}})"},
    {Ready{.step = 100}, R"({"seq":9,"type":"ready","body":{"step":100}})"},
    {Progress{.step = 1,
              .steps = 2,
              .loss = 0.1,
              .learning_rate = 3e-4,
              .gradient_norm = 1.5,
              .tokens_per_second = 1e6,
              .tokens = 4096,
              .step_seconds = 0.25,
              .validation_loss = 2.5,
              .validation_step = 1},
     R"({"seq":9,"type":"progress","body":{"step":1,"steps":2,"loss":0.1,"learning_rate":0.0003,"gradient_norm":1.5,"tokens_per_second":1000000.0,"tokens":4096,"step_seconds":0.25,"validation_loss":2.5,"validation_step":1}})"},
    {StoreRequest{.request_id = 6,
                  .operation = StoreOperation::kCompareSet,
                  .key = "k",
                  .value = kBytes,
                  .expected = "x",
                  .amount = 3},
     R"({"seq":9,"type":"store_request","body":{"request_id":6,"operation":"compare_set","key":"k","value":"AP8KIlwggAA=","expected":"eA==","amount":3}})"},
    {CheckpointCommit{.request_id = 5, .step = 100, .path = "/c", .manifest_digest = "d", .next_sample = 800},
     R"({"seq":9,"type":"checkpoint_commit","body":{"request_id":5,"step":100,"path":"/c","manifest_digest":"d","next_sample":800}})"},
    {UpdateResult{.error = "no"}, R"({"seq":9,"type":"update_result","body":{"error":"no"}})"},
    {Fatal{.failure_class = "oom", .message = "out\nof"},
     R"({"seq":9,"type":"fatal","body":{"failure_class":"oom","message":"out\nof"}})"},
    {Started{.pid = 4242, .start_ticks = 7}, R"({"seq":9,"type":"started","body":{"pid":4242,"start_ticks":7}})"},
    {Exited{.exit_code = 1,
            .signal = 9,
            .stopped_by_agent = true,
            .start_failed = true,
            .error = "exec",
            .fatal_class = "user",
            .fatal_message = "m"},
     R"({"seq":9,"type":"exited","body":{"exit_code":1,"signal":9,"stopped_by_agent":true,"start_failed":true,"error":"exec","fatal_class":"user","fatal_message":"m"}})"},
    {CaughtUp{}, R"({"seq":9,"type":"caught_up","body":{}})"},
    {Kill{.grace_seconds = 30}, R"({"seq":9,"type":"kill","body":{"grace_seconds":30.0}})"},
    {Release{}, R"({"seq":9,"type":"release","body":{}})"},
    {Waiting{}, R"({"seq":9,"type":"waiting","body":{}})"},
    {Take{}, R"({"seq":9,"type":"take","body":{}})"},
    {TakePicture{"it hangs"}, R"({"seq":9,"type":"take_picture","body":{"reason":"it hangs"}})"},
};

std::string Encode(const Message& message) { return EncodeLine({.seq = 9, .message = message}).value(); }

TEST(Messages, TheTableHasEveryType) {
  std::vector<bool> seen(std::variant_size_v<Message>);

  for (const auto& [message, line] : kMessages) seen[message.index()] = true;

  EXPECT_THAT(seen, testing::Each(true));
}

TEST(Messages, EveryTypeHasAFixedLineAndComesBackTheSame) {
  for (const auto& [message, line] : kMessages) {
    EXPECT_EQ(Encode(message), line);

    absl::StatusOr<Envelope> decoded = DecodeLine(line);

    ASSERT_TRUE(decoded.ok()) << decoded.status();
    EXPECT_EQ(decoded->seq, 9);
    EXPECT_EQ(decoded->message.index(), message.index()) << line;
    // The line has every field, so equal lines are equal messages.
    EXPECT_EQ(Encode(decoded->message), line);
  }
}

TEST(Messages, EveryTruncatedLineIsRefusedAndNeverCrashes) {
  for (const auto& [message, line] : kMessages) {
    for (size_t length = 0; length < line.size(); ++length) {
      EXPECT_EQ(DecodeLine(line.substr(0, length)).status().code(), absl::StatusCode::kInvalidArgument) << line;
    }
  }
}

TEST(Messages, LossThatIsNotANumberSurvives) {
  Progress progress = {.loss = std::nan(""), .gradient_norm = -std::numeric_limits<double>::infinity()};

  auto decoded = std::get<Progress>(DecodeLine(Encode(progress))->message);

  EXPECT_TRUE(std::isnan(decoded.loss));
  EXPECT_EQ(decoded.gradient_norm, -std::numeric_limits<double>::infinity());
  EXPECT_FALSE(decoded.validation_loss.has_value());
}

TEST(Messages, DoublesKeepTheirBits) {
  for (double loss : {0.1, 1.0 / 3.0, 5e-324, 1.7976931348623157e308, -0.0, 10.824917793273926}) {
    auto decoded = std::get<Progress>(DecodeLine(Encode(Progress{.loss = loss}))->message);

    EXPECT_EQ(std::signbit(decoded.loss), std::signbit(loss));
    EXPECT_EQ(decoded.loss, loss);
  }
}

TEST(Messages, TextThatIsNoUtf8IsCleanedNotRefused) {
  auto decoded = std::get<Fatal>(DecodeLine(Encode(Fatal{.failure_class = "user", .message = "a\xff" "b"}))->message);

  EXPECT_EQ(decoded.message, "a\xEF\xBF\xBD" "b");
}

TEST(Messages, TooLongALineIsRefusedWithItsSize) {
  StoreRequest request = {.operation = StoreOperation::kSet, .key = "k", .value = std::string(kLineBytesMax, 'x')};

  absl::StatusOr<std::string> line = EncodeLine({.message = request});

  EXPECT_EQ(line.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(line.status().message()), HasSubstr("store_request takes 87"));
  EXPECT_EQ(DecodeLine(std::string(kLineBytesMax + 1, ' ')).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(Messages, WhetherAMessageFitsDoesNotDependOnItsNumber) {
  StoreRequest request = {.operation = StoreOperation::kSet, .key = std::string(kLineBytesMax, 'k')};
  while (!EncodeLine({.seq = 1, .message = request}).ok()) request.key.pop_back();

  absl::StatusOr<std::string> passed_on = EncodeLine({.seq = std::numeric_limits<int64_t>::max(), .message = request});

  ASSERT_TRUE(passed_on.ok()) << passed_on.status();
  EXPECT_EQ(passed_on->size(), kLineBytesMax);
}

TEST(Messages, UnknownTypeIsUnimplementedSoThatItCanBeIgnored) {
  absl::StatusOr<Envelope> decoded = DecodeLine(R"({"seq":1,"type":"dance","body":{}})");

  EXPECT_EQ(decoded.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(decoded.status().message()), HasSubstr("dance"));
}

TEST(Messages, UnknownFieldsAreIgnored) {
  absl::StatusOr<Envelope> decoded =
      DecodeLine(R"({"seq":1,"type":"ready","body":{"step":3,"mood":"good"},"trace":"t"})");

  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(std::get<Ready>(decoded->message).step, 3);
}

struct Hostile {
  std::string line;
  std::string fault;  // part of the message
};

TEST(Messages, FaultsAreNamed) {
  const std::vector<Hostile> cases = {
      {"", "not a JSON object"},
      {"[]", "not a JSON object"},
      {"nonsense", "not a JSON object"},
      {std::string(1000, '['), "not a JSON object"},
      {std::string(32000, '[') + std::string(32000, ']'), "not a JSON object"},
      {R"({"type":"ready","body":{"step":1}})", "\"seq\""},
      {R"({"seq":1.5,"type":"ready","body":{"step":1}})", "\"seq\""},
      {R"({"seq":1,"type":4,"body":{"step":1}})", "\"type\""},
      {R"({"seq":1,"type":"ready"})", "\"body\""},
      {R"({"seq":1,"type":"ready","body":[]})", "ready: expected an object, found []"},
      {R"({"seq":1,"type":"ready","body":{}})", "ready.step: missing"},
      {R"({"seq":1,"type":"ready","body":{"step":"1"}})", "ready.step: expected a whole number, found \"1\""},
      {R"({"seq":1,"type":"ready","body":{"step":1.0}})", "ready.step: expected a whole number"},
      {R"({"seq":1,"type":"ready","body":{"step":9223372036854775808}})", "ready.step: expected a whole number from"},
      {R"({"seq":1,"type":"ready","body":{"step":null}})", "ready.step: expected a whole number, found null"},
      {R"({"seq":1,"type":"kill","body":{"grace_seconds":"soon"}})", "kill.grace_seconds: expected a number"},
      {R"({"seq":1,"type":"stop","body":{"reason":7}})", "stop.reason: expected a string, found 7"},
      {R"({"seq":1,"type":"hello","body":{"version":4294967296,"role":"a","generation":{},"rank":0}})",
       "hello.version: expected a whole number from"},
      {R"({"seq":1,"type":"hello","body":{"version":1,"role":"a","generation":{"job":"j"},"rank":0}})",
       "hello.generation.attempt: missing"},
      {R"({"seq":1,"type":"checkpoint_commit_reply","body":{"request_id":1,"committed":true,"error":"","removable_paths":["a",2]}})",
       "checkpoint_commit_reply.removable_paths[1]: expected a string"},
      {R"({"seq":1,"type":"store_request","body":{"request_id":1,"operation":"drop","key":"","value":"","expected":"","amount":0}})",
       "store_request.operation: unknown value \"drop\""},
      {R"({"seq":1,"type":"store_request","body":{"request_id":1,"operation":"set","key":"","value":"%%%","expected":"","amount":0}})",
       "store_request.value: expected base64"},
      {R"({"seq":1,"type":"exited","body":{"exit_code":0,"signal":0,"stopped_by_agent":1}})",
       "exited.stopped_by_agent: expected true or false"},
  };
  for (const Hostile& c : cases) {
    absl::StatusOr<Envelope> decoded = DecodeLine(c.line);

    ASSERT_EQ(decoded.status().code(), absl::StatusCode::kInvalidArgument) << c.line;
    EXPECT_THAT(std::string(decoded.status().message()), HasSubstr(c.fault));
  }
}

TEST(Messages, TheFaultShowsOnlyTheBeginningOfWhatWasFound) {
  std::string line = absl::StrCat(R"({"seq":1,"type":"ready","body":{"step":")", std::string(50000, 'x'), R"("}})");

  EXPECT_LT(DecodeLine(line).status().message().size(), 200u);
}

}  // namespace
}  // namespace llmctl::contract
