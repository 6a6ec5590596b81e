// A message as JSON, as scripts want it.
//
// protobuf's own JSON writes 64-bit numbers as strings and leaves zeros out, so `jq .attempt` would be null for a
// new job and ".steps" could not be compared. Here numbers are numbers, every field of a view is there, enum
// values are short lower-case words ("running"), times are RFC 3339 in UTC, and NaN is null. Fields of a job
// specification that are absent stay absent: in there 0 and absent differ.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace google::protobuf {
class EnumValueDescriptor;
class Message;
}  // namespace google::protobuf

namespace llmctl::client {

nlohmann::ordered_json ToJson(const google::protobuf::Message& message);

// A resolved specification as a contract wants it: names as in the proto file, what is absent left out, all else there.
// Maps are no part of it.
nlohmann::ordered_json ToContractJson(const google::protobuf::Message& message);

// JOB_PHASE_RUNNING -> "running".
std::string ShortName(const google::protobuf::EnumValueDescriptor& value);

}  // namespace llmctl::client
