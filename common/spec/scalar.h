// One YAML scalar as the value of one field, taken literally.
//
// YAML guesses types, and readers guess differently: 010 is eight or ten, yes is true or a string, 1_000 is a
// number or not. Here the field decides and nothing is converted: a number is written as JSON writes it, a
// boolean is true or false, and a string that could pass for something else wants quotes.
#pragma once

#include <optional>
#include <string>

namespace google::protobuf {
class FieldDescriptor;
class Message;
}  // namespace google::protobuf

namespace llmctl::spec {

struct Scalar {
  std::string text;
  bool quoted = false;
};

// Sets `field`, or adds to it if it is a list; otherwise leaves the message alone and says what is wrong: "found ...,
// expected ...".
std::optional<std::string> SetScalar(const Scalar& scalar, const google::protobuf::FieldDescriptor& field,
                                     google::protobuf::Message& message);

// Whether the unquoted `text` is read as something other than a string by one YAML reader or another.
bool LooksLikeAnotherType(const std::string& text);

// The scalar as it is shown in a message: quoted, cut to a readable length.
std::string Shown(const std::string& text);

}  // namespace llmctl::spec
