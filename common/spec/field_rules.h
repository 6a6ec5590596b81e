// What the options of a field (proto/llmctl/v1/options.proto) ask of its value.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

#include "common/spec/fault.h"

namespace google::protobuf {
class Descriptor;
class FieldDescriptor;
class Message;
}  // namespace google::protobuf

namespace llmctl::spec {

// What a value of the field must be, to follow "expected": "a whole number from 1 to 1024".
std::string ExpectedValue(const google::protobuf::FieldDescriptor& field);

// The fields of a section as YAML names them.
std::vector<std::string> FieldNames(const google::protobuf::Descriptor& section);

// Adds a fault for every field of `message` and the sections in it that breaks its rules. `given` tells a
// zero that was written from a field that was left out; without a file it is empty.
void CheckFieldRules(const google::protobuf::Message& message, absl::string_view path, const Positions& given,
                     FaultList& faults);

}  // namespace llmctl::spec
