#include "worker/contract/messages.h"

#include <iterator>
#include <limits>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "common/base/status.h"
#include "common/base/version_range.h"
#include "worker/contract/json_fields.h"
#include "worker/contract/message_fields.h"

namespace llmctl::contract {
namespace {

// By value of the enumerator.
constexpr const char* kStoreOperations[] = {"get", "set", "wait", "add", "compare_set", "delete"};

}  // namespace

// Found by argument-dependent lookup, hence not in the unnamed namespace.

template <typename V>
void VisitFields(V& visit, FieldsOf<Hello> auto& m) {
  visit("version", m.version);
  visit("role", m.role);
  visit("generation", m.generation);
  visit("rank", m.rank);
  visit("oldest_version", m.oldest_version);
}

template <typename V>
void VisitFields(V& visit, FieldsOf<StoreReply> auto& m) {
  visit("request_id", m.request_id);
  visit("found", m.found);
  visit.Bytes("value", m.value);
  visit("number", m.number);
  visit("error", m.error);
}

template <typename V>
void VisitFields(V& visit, FieldsOf<CheckpointRequest, CaughtUp, Release, Waiting, Take> auto& m) {}

template <typename V>
void VisitFields(V& visit, FieldsOf<CheckpointCommitReply> auto& m) {
  visit("request_id", m.request_id);
  visit("committed", m.committed);
  visit("error", m.error);
  visit("removable_paths", m.removable_paths);
}

template <typename V>
void VisitFields(V& visit, FieldsOf<Yield> auto& m) {
  visit("reason", m.reason);
  visit("deadline_seconds", m.deadline_seconds);
}

template <typename V>
void VisitFields(V& visit, FieldsOf<Update> auto& m) {
  visit("settings_json", m.settings_json);
}

template <typename V>
void VisitFields(V& visit, FieldsOf<Stop> auto& m) {
  visit("reason", m.reason);
}

template <typename V>
void VisitFields(V& visit, FieldsOf<Ready> auto& m) {
  visit("step", m.step);
}

template <typename V>
void VisitFields(V& visit, FieldsOf<Progress> auto& m) {
  visit("step", m.step);
  visit("steps", m.steps);
  visit("loss", m.loss);
  visit("learning_rate", m.learning_rate);
  visit("gradient_norm", m.gradient_norm);
  visit("tokens_per_second", m.tokens_per_second);
  visit("tokens", m.tokens);
  visit("step_seconds", m.step_seconds);
  visit("validation_loss", m.validation_loss);
  visit("validation_step", m.validation_step);
}

template <typename V>
void VisitFields(V& visit, FieldsOf<StoreRequest> auto& m) {
  visit("request_id", m.request_id);
  visit.Enum("operation", m.operation, kStoreOperations);
  visit("key", m.key);
  visit.Bytes("value", m.value);
  visit.Bytes("expected", m.expected);
  visit("amount", m.amount);
}

template <typename V>
void VisitFields(V& visit, FieldsOf<CheckpointCommit> auto& m) {
  visit("request_id", m.request_id);
  visit("step", m.step);
  visit("path", m.path);
  visit("manifest_digest", m.manifest_digest);
  visit("next_sample", m.next_sample);
}

template <typename V>
void VisitFields(V& visit, FieldsOf<UpdateResult> auto& m) {
  visit("error", m.error);
}

template <typename V>
void VisitFields(V& visit, FieldsOf<Fatal> auto& m) {
  visit("failure_class", m.failure_class);
  visit("message", m.message);
}

template <typename V>
void VisitFields(V& visit, FieldsOf<Started> auto& m) {
  visit("pid", m.pid);
  visit("start_ticks", m.start_ticks);
}

template <typename V>
void VisitFields(V& visit, FieldsOf<Exited> auto& m) {
  visit("exit_code", m.exit_code);
  visit("signal", m.signal);
  visit("stopped_by_agent", m.stopped_by_agent);
  visit("start_failed", m.start_failed);
  visit("error", m.error);
  visit("fatal_class", m.fatal_class);
  visit("fatal_message", m.fatal_message);
}

template <typename V>
void VisitFields(V& visit, FieldsOf<Kill> auto& m) {
  visit("grace_seconds", m.grace_seconds);
}

template <typename V>
void VisitFields(V& visit, FieldsOf<TakePicture> auto& m) {
  visit("reason", m.reason);
}

namespace {

// By index of the variant: the name of each type on the wire.
constexpr const char* kTypeNames[] = {
    "hello",     "assignment", "store_reply",   "checkpoint_request", "checkpoint_commit_reply",
    "yield",     "update",     "stop",          "ready",              "progress",
    "store_request", "checkpoint_commit", "update_result", "fatal",   "started",
    "exited",    "caught_up",  "kill",          "release",            "waiting",
    "take",      "take_picture"};
static_assert(std::size(kTypeNames) == std::variant_size_v<Message>, "every message type needs its name");

// Reads alternative `i` if that is what `type` names; tries the others in turn.
template <size_t i = 0>
absl::StatusOr<Message> ReadMessage(const std::string& type, const Json& body) {
  if constexpr (i == std::variant_size_v<Message>) {
    return absl::UnimplementedError(absl::StrCat("message type \"", type, "\" is not known to version ", kVersion));
  } else {
    if (type != kTypeNames[i]) return ReadMessage<i + 1>(type, body);
    std::variant_alternative_t<i, Message> message;
    LLM_RETURN_IF_ERROR(FieldReader::Read(body, type, FieldReader::UnknownFields::kIgnore, message));
    return Message(std::move(message));
  }
}

}  // namespace

absl::Status CheckVersion(const Hello& theirs) {
  int oldest = theirs.oldest_version.value_or(theirs.version);
  if (CommonVersion({kOldestVersion, kVersion}, {oldest, theirs.version}).has_value()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("this ", theirs.role, " speaks versions ", oldest, " to ",
                                                    theirs.version, " of the contract, we speak ", kOldestVersion,
                                                    " to ", kVersion));
}

absl::string_view MessageName(const Message& message) { return kTypeNames[message.index()]; }

absl::StatusOr<std::string> EncodeLine(const Envelope& envelope) {
  const char* type = kTypeNames[envelope.message.index()];
  Json json;
  json["seq"] = envelope.seq;
  json["type"] = type;
  json["body"] = std::visit([](const auto& message) { return FieldWriter::Write(message); }, envelope.message);
  std::string line = DumpJson(json);
  // Whoever passes a message on numbers it anew: whether it fits must not depend on the number.
  constexpr size_t kSeqDigitsMax = std::numeric_limits<int64_t>::digits10 + 1;
  size_t bytes = line.size() + kSeqDigitsMax - absl::StrCat(envelope.seq).size();
  if (bytes > kLineBytesMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("message ", type, " takes ", bytes, " bytes, more than the ", kLineBytesMax, " of a line"));
  }
  return line;
}

absl::StatusOr<Envelope> DecodeLine(absl::string_view line) {
  if (line.size() > kLineBytesMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("line of ", line.size(), " bytes, more than the ", kLineBytesMax, " allowed"));
  }
  std::optional<Json> json = ParseJson(line);
  if (!json.has_value() || !json->is_object()) return absl::InvalidArgumentError("line is not a JSON object");
  auto seq = json->find("seq");
  auto type = json->find("type");
  auto body = json->find("body");
  if (seq == json->end() || !seq->is_number_integer()) {
    return absl::InvalidArgumentError("line without a whole number \"seq\"");
  }
  if (type == json->end() || !type->is_string()) return absl::InvalidArgumentError("line without a string \"type\"");
  if (body == json->end()) return absl::InvalidArgumentError("line without a \"body\"");
  LLM_ASSIGN_OR_RETURN(Message message, ReadMessage(type->get_ref<const std::string&>(), *body));
  return Envelope{.seq = seq->get<int64_t>(), .message = std::move(message)};
}

}  // namespace llmctl::contract
