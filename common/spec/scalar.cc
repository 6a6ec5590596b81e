#include "common/spec/scalar.h"

#include <cmath>
#include <limits>
#include <type_traits>

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

#include "common/base/check.h"
#include "common/spec/field_rules.h"
#include "common/spec/pattern.h"

namespace llmctl::spec {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

std::string Mismatch(const Scalar& scalar, const FieldDescriptor& field, absl::string_view hint = "") {
  std::string found = scalar.quoted ? absl::StrCat("the string ", Shown(scalar.text)) : scalar.text;
  if (!scalar.quoted && found.size() > 64) found = Shown(scalar.text);
  return absl::StrCat("found ", found, ", expected ", ExpectedValue(field), hint.empty() ? "" : "; ", hint);
}

constexpr char kWholeForm[] = "-?(0|[1-9][0-9]*)";
constexpr char kNumberForm[] = "-?(0|[1-9][0-9]*)(\\.[0-9]+)?([eE][-+]?[0-9]+)?";

// What to write instead of something that is nearly a number; empty if it is not.
std::string NumberHint(const Scalar& scalar, bool whole) {
  const std::string& text = scalar.text;
  if (scalar.quoted && Matches(text, whole ? kWholeForm : kNumberForm)) return "remove the quotes";
  if (Matches(text, "-?0[0-9_]+")) return "a leading zero means octal to some readers: write the number without it";
  if (Matches(text, "-?[0-9][0-9_,']*[0-9]") && !Matches(text, "-?[0-9]+")) {
    return "write the digits without separators";
  }
  if (Matches(text, "0[xob][0-9a-fA-F_]+")) return "write it in decimal";
  if (Matches(text, "\\+[0-9.].*")) return "write it without the +";
  if (Matches(text, "-?\\.[0-9]+|-?[0-9]+\\.([eE].*)?")) return "write digits on both sides of the point";
  double number = 0;
  bool fraction_form = whole && !Matches(text, kWholeForm) && Matches(text, kNumberForm);
  if (fraction_form && absl::SimpleAtod(text, &number) && number == std::floor(number) && std::abs(number) < 1e15) {
    return absl::StrCat("write ", static_cast<int64_t>(number));
  }
  return "";
}

template <typename Number>
std::optional<Number> ParseWhole(const Scalar& scalar) {
  Number number = 0;
  bool read = !scalar.quoted && Matches(scalar.text, kWholeForm) && absl::SimpleAtoi(scalar.text, &number);
  return read ? std::optional<Number>(number) : std::nullopt;
}

std::optional<double> ParseNumber(const Scalar& scalar) {
  double number = 0;
  bool read = !scalar.quoted && Matches(scalar.text, kNumberForm) && absl::SimpleAtod(scalar.text, &number) &&
              std::isfinite(number);
  return read ? std::optional<double>(number) : std::nullopt;
}

std::string NumberMismatch(const Scalar& scalar, const FieldDescriptor& field) {
  return Mismatch(scalar, field, NumberHint(scalar, field.cpp_type() != FieldDescriptor::CPPTYPE_DOUBLE));
}

// A value of a list is added to it.
template <typename Value>
void Store(Message& message, const FieldDescriptor& field, const Value& value) {
  const auto& access = *message.GetReflection();
  bool list = field.is_repeated();
  if constexpr (std::is_same_v<Value, bool>) {
    list ? access.AddBool(&message, &field, value) : access.SetBool(&message, &field, value);
  } else if constexpr (std::is_same_v<Value, std::string>) {
    list ? access.AddString(&message, &field, value) : access.SetString(&message, &field, value);
  } else if constexpr (std::is_same_v<Value, int32_t>) {
    list ? access.AddInt32(&message, &field, value) : access.SetInt32(&message, &field, value);
  } else if constexpr (std::is_same_v<Value, int64_t>) {
    list ? access.AddInt64(&message, &field, value) : access.SetInt64(&message, &field, value);
  } else if constexpr (std::is_same_v<Value, uint64_t>) {
    list ? access.AddUInt64(&message, &field, value) : access.SetUInt64(&message, &field, value);
  } else {
    static_assert(std::is_same_v<Value, double>);
    list ? access.AddDouble(&message, &field, value) : access.SetDouble(&message, &field, value);
  }
}

std::optional<std::string> SetBool(const Scalar& scalar, const FieldDescriptor& field, Message& message) {
  bool is_true = scalar.text == "true";
  if (scalar.quoted || (!is_true && scalar.text != "false")) {
    std::string lower = absl::AsciiStrToLower(scalar.text);
    bool meant_true = lower == "yes" || lower == "on" || lower == "true" || lower == "y" || lower == "1";
    bool meant_false = lower == "no" || lower == "off" || lower == "false" || lower == "n" || lower == "0";
    return Mismatch(scalar, field, meant_true ? "write true" : meant_false ? "write false" : "");
  }
  Store(message, field, is_true);
  return std::nullopt;
}

std::optional<std::string> SetString(const Scalar& scalar, const FieldDescriptor& field, Message& message) {
  if (!scalar.quoted && LooksLikeAnotherType(scalar.text)) {
    return Mismatch(scalar, field, absl::StrCat("if the text is meant, write \"", scalar.text, "\""));
  }
  Store(message, field, scalar.text);
  return std::nullopt;
}

}  // namespace

std::optional<std::string> SetScalar(const Scalar& scalar, const FieldDescriptor& field, Message& message) {
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL: return SetBool(scalar, field, message);
    case FieldDescriptor::CPPTYPE_STRING: return SetString(scalar, field, message);
    case FieldDescriptor::CPPTYPE_INT32:
      if (auto number = ParseWhole<int32_t>(scalar)) return Store(message, field, *number), std::nullopt;
      return NumberMismatch(scalar, field);
    case FieldDescriptor::CPPTYPE_INT64:
      if (auto number = ParseWhole<int64_t>(scalar)) return Store(message, field, *number), std::nullopt;
      return NumberMismatch(scalar, field);
    case FieldDescriptor::CPPTYPE_UINT64:
      if (auto number = ParseWhole<uint64_t>(scalar)) return Store(message, field, *number), std::nullopt;
      return NumberMismatch(scalar, field);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      if (auto number = ParseNumber(scalar)) return Store(message, field, *number), std::nullopt;
      return NumberMismatch(scalar, field);
    default: CHECK(false) << field.full_name() << " has a type that a specification may not use";
  }
  return std::nullopt;
}

bool LooksLikeAnotherType(const std::string& text) {
  // YAML 1.1 and 1.2 together: numbers in any base, with separators or base 60, booleans, nulls.
  return Matches(text, "[-+]?[0-9][0-9_,]*(\\.[0-9_]*)?([eE][-+]?[0-9]+)?|[-+]?\\.[0-9_]+([eE][-+]?[0-9]+)?|"
                       "[-+]?0[xob][0-9a-fA-F_]+|[-+]?[0-9]+(:[0-5]?[0-9])+(\\.[0-9]*)?|"
                       "(?i)[-+]?\\.inf|\\.nan|true|false|yes|no|on|off|y|n|null|~|");
}

std::string Shown(const std::string& text) {
  constexpr size_t kShownBytes = 64;
  if (text.size() <= kShownBytes) return absl::StrCat("\"", text, "\"");
  size_t cut = kShownBytes;
  while (cut > 0 && (static_cast<unsigned char>(text[cut]) & 0xC0) == 0x80) --cut;  // never inside a character
  return absl::StrCat("\"", text.substr(0, cut), "...\"");
}

}  // namespace llmctl::spec
