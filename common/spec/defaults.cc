#include <algorithm>
#include <cstdint>

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include "common/base/check.h"
#include "common/spec/scalar.h"
#include "common/spec/validate.h"
#include "llmctl/v1/options.pb.h"

namespace llmctl::spec {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// Every section with the default_value of each field, required ones included. Reading those texts takes longer than all
// that is done for a submission otherwise, so it is done once.
void ReadDefaults(Message& section) {
  const auto& access = *section.GetReflection();
  for (int i = 0; i < section.GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor& field = *section.GetDescriptor()->field(i);
    if (field.is_repeated()) continue;
    const v1::FieldRules& rules = field.options().GetExtension(v1::rules);
    if (field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      ReadDefaults(*access.MutableMessage(&section, &field));
    } else if (!rules.default_value().empty()) {
      bool quoted = field.cpp_type() == FieldDescriptor::CPPTYPE_STRING;
      auto fault = SetScalar({rules.default_value(), quoted}, field, section);
      CHECK(!fault) << "default of " << field.full_name() << ": " << *fault;
    }
  }
}

const v1::JobSpec& AllDefaults() {
  static const v1::JobSpec& defaults = *[] {
    auto* spec = new v1::JobSpec;
    ReadDefaults(*spec);
    return spec;
  }();
  return defaults;
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

// The default of each field that is absent, in this section and those below it.
void ApplyFieldDefaults(const Message& defaults, Message& section) {
  const auto& access = *section.GetReflection();
  for (int i = 0; i < section.GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor& field = *section.GetDescriptor()->field(i);
    if (field.is_repeated()) continue;
    bool given = access.HasField(section, &field);
    if (field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      if (given || !field.options().GetExtension(v1::rules).required()) {
        ApplyFieldDefaults(access.GetMessage(defaults, &field), *access.MutableMessage(&section, &field));
      }
    } else if (!given && access.HasField(defaults, &field)) {
      CopyScalar(defaults, field, section);
    }
  }
}

int32_t DefaultFfnSize(int32_t hidden_size) {
  constexpr int64_t kMultiple = 64;
  int64_t size = (int64_t{8} * hidden_size + 2) / 3;
  return static_cast<int32_t>((size + kMultiple - 1) / kMultiple * kMultiple);
}

}  // namespace

void ApplyDefaults(v1::JobSpec& spec) {
  ApplyFieldDefaults(AllDefaults(), spec);
  if (spec.has_model()) {
    v1::Model& model = *spec.mutable_model();
    if (model.kv_heads() == 0) model.set_kv_heads(model.heads());
    if (model.ffn_size() == 0) model.set_ffn_size(DefaultFfnSize(model.hidden_size()));
  }
  if (spec.has_training() && !spec.training().schedule().has_warmup_steps()) {
    int64_t warmup = std::min<int64_t>(2000, spec.training().steps() / 10);
    spec.mutable_training()->mutable_schedule()->set_warmup_steps(warmup);
  }
  v1::WorkerCount& workers = *spec.mutable_resources()->mutable_workers();
  if (workers.max() == 0) workers.set_max(workers.min());
}

}  // namespace llmctl::spec
