#include "common/spec/field_rules.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "common/base/check.h"
#include "common/spec/duration.h"
#include "common/spec/nearest_name.h"
#include "common/spec/pattern.h"
#include "llmctl/v1/options.pb.h"

namespace llmctl::spec {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using v1::FieldRules;

const FieldRules& RulesOf(const FieldDescriptor& field) { return field.options().GetExtension(v1::rules); }

bool IsWhole(const FieldDescriptor& field) { return field.cpp_type() != FieldDescriptor::CPPTYPE_DOUBLE; }

std::string Bound(const FieldDescriptor& field, double bound) {
  return IsWhole(field) ? absl::StrCat(static_cast<int64_t>(bound)) : absl::StrCat(bound);
}

std::string ExpectedNumber(const FieldDescriptor& field) {
  const FieldRules& rules = RulesOf(field);
  std::string out = IsWhole(field) ? "a whole number" : "a number";
  if (rules.has_min() && rules.has_max()) {
    absl::StrAppend(&out, " from ", Bound(field, rules.min()), " to ", Bound(field, rules.max()));
  } else if (rules.has_min()) {
    absl::StrAppend(&out, " of at least ", Bound(field, rules.min()));
  } else if (rules.has_max()) {
    absl::StrAppend(&out, " of at most ", Bound(field, rules.max()));
  } else if (field.cpp_type() == FieldDescriptor::CPPTYPE_UINT64) {
    absl::StrAppend(&out, " from 0 to ", std::numeric_limits<uint64_t>::max());
  }
  return out;
}

std::string ExpectedString(const FieldDescriptor& field) {
  const FieldRules& rules = RulesOf(field);
  if (rules.one_of_size() == 1) return rules.one_of(0);
  if (rules.one_of_size() > 1) return absl::StrCat("one of ", absl::StrJoin(rules.one_of(), ", "));
  if (rules.duration()) return kDurationForm;
  if (!rules.pattern().empty()) return rules.pattern_meaning();
  return "a string";
}

// Of a list, item `item`; else -1.
double NumberOf(const Message& message, const FieldDescriptor& field, int item) {
  const auto& access = *message.GetReflection();
  bool list = item >= 0;
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return list ? access.GetRepeatedInt32(message, &field, item) : access.GetInt32(message, &field);
    case FieldDescriptor::CPPTYPE_INT64:
      return static_cast<double>(list ? access.GetRepeatedInt64(message, &field, item)
                                      : access.GetInt64(message, &field));
    case FieldDescriptor::CPPTYPE_UINT64:
      return static_cast<double>(list ? access.GetRepeatedUInt64(message, &field, item)
                                      : access.GetUInt64(message, &field));
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return list ? access.GetRepeatedDouble(message, &field, item) : access.GetDouble(message, &field);
    default: CHECK(false) << field.full_name() << " is not a number that a specification may hold";
  }
  return 0;
}

std::optional<std::string> NumberFault(double number, const FieldDescriptor& field) {
  const FieldRules& rules = RulesOf(field);
  bool fits = std::isfinite(number) && (!rules.has_min() || number >= rules.min()) &&
              (!rules.has_max() || number <= rules.max());
  if (fits) return std::nullopt;
  return absl::StrCat("found ", Bound(field, number), ", expected ", ExpectedNumber(field));
}

std::optional<std::string> StringFault(const std::string& value, const FieldDescriptor& field) {
  const FieldRules& rules = RulesOf(field);
  bool fits = true;
  std::string hint;
  if (rules.one_of_size() > 0) {
    std::vector<std::string> choices(rules.one_of().begin(), rules.one_of().end());
    fits = std::find(choices.begin(), choices.end(), value) != choices.end();
    std::optional<std::string> nearest = fits ? std::nullopt : NearestName(value, choices);
    if (nearest && choices.size() > 1) hint = absl::StrCat("; did you mean ", *nearest, "?");
  } else if (rules.duration()) {
    fits = ParseDuration(value).ok();
  } else if (!rules.pattern().empty()) {
    fits = Matches(value, rules.pattern());
  } else if (rules.required()) {
    fits = !value.empty();
  }
  if (fits) return std::nullopt;
  return absl::StrCat("found \"", value, "\", expected ", ExpectedString(field), hint);
}

// Whether the field holds a value: one that was written, or one other than its type's zero.
bool HasValue(const Message& message, const FieldDescriptor& field, const std::string& path, const Positions& given) {
  return message.GetReflection()->HasField(message, &field) || given.count(path) > 0;
}

std::optional<std::string> ValueFault(const Message& message, const FieldDescriptor& field, int item) {
  const auto& access = *message.GetReflection();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL: return std::nullopt;
    case FieldDescriptor::CPPTYPE_STRING:
      return StringFault(
          item >= 0 ? access.GetRepeatedString(message, &field, item) : access.GetString(message, &field), field);
    default: return NumberFault(NumberOf(message, field, item), field);
  }
}

void CheckList(const Message& message, const FieldDescriptor& field, const std::string& path, const Positions& given,
               FaultList& faults) {
  const auto& access = *message.GetReflection();
  int size = access.FieldSize(message, &field);
  if (size == 0 && RulesOf(field).required()) {
    faults.Add(given, path, absl::StrCat("found none, expected at least one, each ", ExpectedValue(field)));
  }
  for (int item = 0; item < size; ++item) {
    std::string item_path = ItemPath(path, item);
    if (faults.Concerns({item_path})) continue;
    if (field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      CheckFieldRules(access.GetRepeatedMessage(message, &field, item), item_path, given, faults);
    } else if (std::optional<std::string> fault = ValueFault(message, field, item)) {
      faults.Add(given, item_path, *fault);
    }
  }
}

void CheckField(const Message& message, const FieldDescriptor& field, const std::string& path, const Positions& given,
                FaultList& faults) {
  bool is_section = field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
  if (!HasValue(message, field, path, given)) {
    if (RulesOf(field).required()) faults.Add(given, path, absl::StrCat("missing, expected ", ExpectedValue(field)));
    return;
  }
  if (is_section) {
    CheckFieldRules(message.GetReflection()->GetMessage(message, &field), path, given, faults);
  } else if (std::optional<std::string> fault = ValueFault(message, field, /*item=*/-1)) {
    faults.Add(given, path, *fault);
  }
}

}  // namespace

std::string ExpectedValue(const FieldDescriptor& field) {
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return field.is_map() ? "names with a string each"
                            : absl::StrCat("a section with ", absl::StrJoin(FieldNames(*field.message_type()), ", "));
    case FieldDescriptor::CPPTYPE_BOOL: return "true or false";
    case FieldDescriptor::CPPTYPE_STRING: return ExpectedString(field);
    default: return ExpectedNumber(field);
  }
}

std::vector<std::string> FieldNames(const google::protobuf::Descriptor& section) {
  std::vector<std::string> names;
  for (int i = 0; i < section.field_count(); ++i) names.push_back(section.field(i)->json_name());
  return names;
}

void CheckFieldRules(const Message& message, absl::string_view path, const Positions& given, FaultList& faults) {
  const google::protobuf::Descriptor& section = *message.GetDescriptor();
  for (int i = 0; i < section.field_count(); ++i) {
    const FieldDescriptor& field = *section.field(i);
    std::string field_path = ChildPath(path, field.json_name());
    if (field.is_map() || faults.Concerns({field_path})) continue;
    if (field.is_repeated()) {
      CheckList(message, field, field_path, given, faults);
    } else {
      CheckField(message, field, field_path, given, faults);
    }
  }
}

}  // namespace llmctl::spec
