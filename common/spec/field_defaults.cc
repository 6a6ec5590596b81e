#include "common/spec/field_defaults.h"

#include <cstdint>
#include <map>
#include <memory>

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include "common/base/check.h"
#include "common/base/mutex.h"
#include "common/spec/scalar.h"
#include "llmctl/v1/options.pb.h"

namespace llmctl::spec {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

bool IsSection(const FieldDescriptor& field) { return field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE; }

// A section with the default_value of each of its own scalar fields.
std::unique_ptr<Message> ReadDefaults(const Message& prototype) {
  std::unique_ptr<Message> section(prototype.New());
  for (int i = 0; i < section->GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor& field = *section->GetDescriptor()->field(i);
    const v1::FieldRules& rules = field.options().GetExtension(v1::rules);
    if (field.is_repeated() || IsSection(field) || rules.default_value().empty()) continue;
    bool quoted = field.cpp_type() == FieldDescriptor::CPPTYPE_STRING;
    auto fault = SetScalar({rules.default_value(), quoted}, field, *section);
    CHECK(!fault) << "default of " << field.full_name() << ": " << *fault;
  }
  return section;
}

// Reading those texts takes longer than all that is done for a submission otherwise, so it is done once.
const Message& DefaultsOf(const Message& section) {
  static Mutex& mutex = *new Mutex;
  static auto& known = *new std::map<const Descriptor*, std::unique_ptr<Message>>;
  MutexLock lock(mutex);
  std::unique_ptr<Message>& defaults = known[section.GetDescriptor()];
  if (defaults == nullptr) defaults = ReadDefaults(section);
  return *defaults;
}

void CopyScalar(const Message& from, const FieldDescriptor& field, Message& to) {
  const auto& access = *to.GetReflection();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL: return access.SetBool(&to, &field, access.GetBool(from, &field));
    case FieldDescriptor::CPPTYPE_INT32: return access.SetInt32(&to, &field, access.GetInt32(from, &field));
    case FieldDescriptor::CPPTYPE_INT64: return access.SetInt64(&to, &field, access.GetInt64(from, &field));
    case FieldDescriptor::CPPTYPE_UINT64: return access.SetUInt64(&to, &field, access.GetUInt64(from, &field));
    case FieldDescriptor::CPPTYPE_DOUBLE: return access.SetDouble(&to, &field, access.GetDouble(from, &field));
    case FieldDescriptor::CPPTYPE_STRING: return access.SetString(&to, &field, access.GetString(from, &field));
    default: CHECK(false) << field.full_name() << " has a type that a specification may not use";
  }
}

}  // namespace

void ApplyFieldDefaults(Message& section) {
  const auto& access = *section.GetReflection();
  const Message& defaults = DefaultsOf(section);
  for (int i = 0; i < section.GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor& field = *section.GetDescriptor()->field(i);
    if (field.is_map()) continue;
    if (field.is_repeated()) {
      if (!IsSection(field)) continue;
      for (int item = 0; item < access.FieldSize(section, &field); ++item) {
        ApplyFieldDefaults(*access.MutableRepeatedMessage(&section, &field, item));
      }
      continue;
    }
    bool given = access.HasField(section, &field);
    if (IsSection(field)) {
      const v1::FieldRules& rules = field.options().GetExtension(v1::rules);
      if (given || (!rules.required() && !rules.stage())) {
        ApplyFieldDefaults(*access.MutableMessage(&section, &field));
      }
    } else if (!given && access.HasField(defaults, &field)) {
      CopyScalar(defaults, field, section);
    }
  }
}

}  // namespace llmctl::spec
