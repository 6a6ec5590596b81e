// Every rule that a field of JobSpec carries is enforced, and every default is one that the rules allow. Walks
// the descriptor, so that a field added later is covered without a change here.
#include "common/spec/field_rules.h"

#include <cmath>
#include <functional>
#include <set>
#include <string>

#include <gmock/gmock.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

#include "common/spec/read_job_spec.h"
#include "common/spec/scalar.h"
#include "common/spec/validate.h"
#include "llmctl/v1/options.pb.h"
#include "tests/unit/spec/valid_spec.h"

namespace llmctl::spec {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// Calls `visit` with each field that is no section, its path, and the section's message inside a valid
// specification that `visit` may change.
using Visit = std::function<void(const FieldDescriptor&, const std::string& path, Message& section, v1::JobSpec& spec)>;

void ForEachLeaf(const std::function<Message&(v1::JobSpec&)>& section_of, const std::string& path, const Visit& visit) {
  v1::JobSpec probe = *ReadJobSpec(ValidYaml(), "job.yaml");
  const Descriptor& section = *section_of(probe).GetDescriptor();
  for (int i = 0; i < section.field_count(); ++i) {
    const FieldDescriptor& field = *section.field(i);
    if (field.is_map()) continue;
    std::string field_path = ChildPath(path, field.json_name());
    if (field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      ForEachLeaf(
          [&](v1::JobSpec& spec) -> Message& {
            Message& parent = section_of(spec);
            return *parent.GetReflection()->MutableMessage(&parent, &field);
          },
          field_path, visit);
    } else {
      v1::JobSpec spec = *ReadJobSpec(ValidYaml(), "job.yaml");
      visit(field, field_path, section_of(spec), spec);
    }
  }
}

void ForEachLeaf(const Visit& visit) {
  ForEachLeaf([](v1::JobSpec& spec) -> Message& { return spec; }, "", visit);
}

const v1::FieldRules& RulesOf(const FieldDescriptor& field) { return field.options().GetExtension(v1::rules); }

bool IsNumber(const FieldDescriptor& field) {
  return field.cpp_type() != FieldDescriptor::CPPTYPE_STRING && field.cpp_type() != FieldDescriptor::CPPTYPE_BOOL;
}

// Whether a line of the message is about the field's own value.
bool IsFaultOf(const absl::Status& status, const std::string& path) {
  for (absl::string_view line : absl::StrSplit(status.message(), '\n')) {
    if (absl::StartsWith(line, absl::StrCat(path, ": "))) return true;
  }
  return false;
}

void SetNumber(Message& section, const FieldDescriptor& field, double value) {
  const auto& access = *section.GetReflection();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32: return access.SetInt32(&section, &field, static_cast<int32_t>(value));
    case FieldDescriptor::CPPTYPE_INT64: return access.SetInt64(&section, &field, static_cast<int64_t>(value));
    case FieldDescriptor::CPPTYPE_UINT64: return access.SetUInt64(&section, &field, static_cast<uint64_t>(value));
    case FieldDescriptor::CPPTYPE_DOUBLE: return access.SetDouble(&section, &field, value);
    default: FAIL() << field.full_name() << " has a type this test does not know";
  }
}

TEST(FieldRules, BoundsAreEnforcedOnEveryNumber) {
  int bounds = 0;
  ForEachLeaf([&](const FieldDescriptor& field, const std::string& path, Message& section, v1::JobSpec& spec) {
    if (!IsNumber(field)) return;
    bool whole = field.cpp_type() != FieldDescriptor::CPPTYPE_DOUBLE;
    if (RulesOf(field).has_max()) {
      double max = RulesOf(field).max();
      SetNumber(section, field, whole ? max + 1 : std::nextafter(max, INFINITY));
      EXPECT_TRUE(IsFaultOf(ValidateJobSpec(spec), path)) << path << " above its maximum is accepted";
      ++bounds;
    }
    double below = whole ? RulesOf(field).min() - 1 : std::nextafter(RulesOf(field).min(), -INFINITY);
    // In a field without presence, 0 is the same as absent; the reader of files tells them apart.
    if (RulesOf(field).has_min() && (below != 0 || field.has_presence())) {
      SetNumber(section, field, below);
      EXPECT_TRUE(IsFaultOf(ValidateJobSpec(spec), path)) << path << " below its minimum is accepted";
      ++bounds;
    }
    if (!whole) {
      SetNumber(section, field, NAN);
      EXPECT_TRUE(IsFaultOf(ValidateJobSpec(spec), path)) << path << " takes NaN";
    }
  });
  EXPECT_GT(bounds, 40);
}

TEST(FieldRules, StringsAreEnforced) {
  int rules = 0;
  ForEachLeaf([&](const FieldDescriptor& field, const std::string& path, Message& section, v1::JobSpec& spec) {
    const v1::FieldRules& r = RulesOf(field);
    if (IsNumber(field) || (r.one_of_size() == 0 && r.pattern().empty() && !r.duration())) return;
    section.GetReflection()->SetString(&section, &field, "\n?");
    EXPECT_TRUE(IsFaultOf(ValidateJobSpec(spec), path)) << path << " takes anything";
    ++rules;
  });
  EXPECT_GE(rules, 10);
}

TEST(FieldRules, RequiredFieldsAreMissedWhenCleared) {
  int required = 0;
  ForEachLeaf([&](const FieldDescriptor& field, const std::string& path, Message& section, v1::JobSpec& spec) {
    if (!RulesOf(field).required()) return;
    section.GetReflection()->ClearField(&section, &field);
    EXPECT_TRUE(IsFaultOf(ValidateJobSpec(spec), path)) << path << " may be absent";
    ++required;
  });
  EXPECT_GE(required, 12);
}

TEST(FieldRules, DefaultsObeyTheRules) {
  ForEachLeaf([&](const FieldDescriptor& field, const std::string& path, Message& section, v1::JobSpec& spec) {
    if (RulesOf(field).default_value().empty()) return;
    bool quoted = field.cpp_type() == FieldDescriptor::CPPTYPE_STRING;
    EXPECT_EQ(SetScalar({RulesOf(field).default_value(), quoted}, field, section), std::nullopt) << path;
    EXPECT_EQ(ValidateJobSpec(spec), absl::OkStatus()) << path;
    EXPECT_FALSE(RulesOf(field).required()) << path << " is required and has a default";
  });
}

// 0 must be told from "absent" wherever both are allowed and mean different things.
TEST(FieldRules, NumbersWhoseZeroIsAChoiceHavePresence) {
  ForEachLeaf([&](const FieldDescriptor& field, const std::string& path, Message&, v1::JobSpec&) {
    const v1::FieldRules& r = RulesOf(field);
    bool zero_allowed = (!r.has_min() || r.min() <= 0) && (!r.has_max() || r.max() >= 0);
    if (IsNumber(field) && zero_allowed && !r.default_value().empty() && r.default_value() != "0") {
      EXPECT_TRUE(field.has_presence()) << path << " must be `optional`";
    }
  });
}

}  // namespace
}  // namespace llmctl::spec
