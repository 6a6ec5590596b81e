#include "client/output/json_view.h"

#include <map>

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <google/protobuf/timestamp.pb.h>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

#include "client/output/figures.h"
#include "common/base/check.h"
#include "llmctl/v1/options.pb.h"

namespace llmctl::client {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using Json = nlohmann::ordered_json;

Json MessageJson(const Message& message) {
  if (message.GetDescriptor() == google::protobuf::Timestamp::descriptor()) {
    return FormatTime(static_cast<const google::protobuf::Timestamp&>(message).seconds());
  }
  return ToJson(message);
}

Json SingleJson(const Message& message, const FieldDescriptor& field) {
  const auto& access = *message.GetReflection();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32: return access.GetInt32(message, &field);
    case FieldDescriptor::CPPTYPE_INT64: return access.GetInt64(message, &field);
    case FieldDescriptor::CPPTYPE_UINT64: return access.GetUInt64(message, &field);
    case FieldDescriptor::CPPTYPE_DOUBLE: return access.GetDouble(message, &field);
    case FieldDescriptor::CPPTYPE_BOOL: return access.GetBool(message, &field);
    case FieldDescriptor::CPPTYPE_STRING: return access.GetString(message, &field);
    case FieldDescriptor::CPPTYPE_ENUM: return ShortName(*access.GetEnum(message, &field));
    case FieldDescriptor::CPPTYPE_MESSAGE: return MessageJson(access.GetMessage(message, &field));
    default: CHECK(false) << field.full_name() << " has a type that no view shows";
  }
  return nullptr;
}

Json MapJson(const Message& message, const FieldDescriptor& field) {
  std::map<std::string, Json> sorted;
  for (int i = 0; i < message.GetReflection()->FieldSize(message, &field); ++i) {
    const Message& pair = message.GetReflection()->GetRepeatedMessage(message, &field, i);
    Json key = SingleJson(pair, *field.message_type()->map_key());
    sorted[key.is_string() ? key.get<std::string>() : key.dump()] =
        SingleJson(pair, *field.message_type()->map_value());
  }
  Json out = Json::object();
  for (auto& [key, value] : sorted) out[key] = std::move(value);
  return out;
}

Json ScalarsJson(const Message& message, const FieldDescriptor& field) {
  const auto& access = *message.GetReflection();
  Json out = Json::array();
  for (int i = 0; i < access.FieldSize(message, &field); ++i) {
    switch (field.cpp_type()) {
      case FieldDescriptor::CPPTYPE_INT64: out.push_back(access.GetRepeatedInt64(message, &field, i)); break;
      case FieldDescriptor::CPPTYPE_DOUBLE: out.push_back(access.GetRepeatedDouble(message, &field, i)); break;
      case FieldDescriptor::CPPTYPE_STRING: out.push_back(access.GetRepeatedString(message, &field, i)); break;
      default: CHECK(false) << field.full_name() << " is a list of a type that no contract has";
    }
  }
  return out;
}

Json ListJson(const Message& message, const FieldDescriptor& field) {
  bool of_messages = field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
  CHECK(of_messages || field.cpp_type() == FieldDescriptor::CPPTYPE_STRING)
      << field.full_name() << ": views list messages and texts only";
  const auto& access = *message.GetReflection();
  Json out = Json::array();
  for (int i = 0; i < access.FieldSize(message, &field); ++i) {
    if (of_messages) {
      out.push_back(MessageJson(access.GetRepeatedMessage(message, &field, i)));
    } else {
      out.push_back(access.GetRepeatedString(message, &field, i));
    }
  }
  return out;
}

// Whether a field without a value says something by it: "attempt: 0" does, "timeLimit: ''" does not.
bool ShownWhenAbsent(const FieldDescriptor& field) {
  return !field.has_presence() && field.cpp_type() != FieldDescriptor::CPPTYPE_STRING &&
         !field.options().HasExtension(v1::rules);
}

}  // namespace

Json ToJson(const Message& message) {
  Json out = Json::object();
  const auto& access = *message.GetReflection();
  for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor& field = *message.GetDescriptor()->field(i);
    if (field.is_map()) {
      if (access.FieldSize(message, &field) > 0) out[field.json_name()] = MapJson(message, field);
    } else if (field.is_repeated()) {
      out[field.json_name()] = ListJson(message, field);
    } else if (access.HasField(message, &field) || ShownWhenAbsent(field)) {
      out[field.json_name()] = SingleJson(message, field);
    }
  }
  return out;
}

Json ToContractJson(const Message& message) {
  Json out = Json::object();
  const auto& access = *message.GetReflection();
  for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor& field = *message.GetDescriptor()->field(i);
    bool is_section = field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
    if (field.is_map() || (field.has_presence() && !access.HasField(message, &field))) continue;
    if (!field.is_repeated()) {
      out[field.name()] =
          is_section ? ToContractJson(access.GetMessage(message, &field)) : SingleJson(message, field);
    } else if (!is_section) {
      out[field.name()] = ScalarsJson(message, field);
    } else {
      Json& list = out[field.name()] = Json::array();
      for (int item = 0; item < access.FieldSize(message, &field); ++item) {
        list.push_back(ToContractJson(access.GetRepeatedMessage(message, &field, item)));
      }
    }
  }
  return out;
}

std::string ShortName(const google::protobuf::EnumValueDescriptor& value) {
  // The prefix is the type's name in capitals: JobPhase, JOB_PHASE_.
  std::string prefix;
  for (char c : value.type()->name()) {
    if (absl::ascii_isupper(c) && !prefix.empty()) prefix.push_back('_');
    prefix.push_back(absl::ascii_toupper(c));
  }
  std::string name = value.name();
  if (name.rfind(absl::StrCat(prefix, "_"), 0) == 0) name = name.substr(prefix.size() + 1);
  return absl::AsciiStrToLower(name);
}

}  // namespace llmctl::client
