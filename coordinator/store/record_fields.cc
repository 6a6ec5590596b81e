#include "coordinator/store/record_fields.h"

#include <limits>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"

namespace llmctl::store {

JsonText EncodeTime(absl::Time time) {
  if (time == absl::InfinitePast() || time == absl::InfiniteFuture()) return nullptr;
  return absl::ToUnixNanos(time);
}

JsonText EncodeDuration(absl::Duration duration) {
  if (duration == absl::InfiniteDuration()) return nullptr;
  return absl::ToInt64Nanoseconds(duration);
}

namespace {

const char* TypeName(const Json& value) {
  switch (value.type()) {
    case simdjson::dom::element_type::ARRAY: return "array";
    case simdjson::dom::element_type::OBJECT: return "object";
    case simdjson::dom::element_type::INT64:
    case simdjson::dom::element_type::UINT64:
    case simdjson::dom::element_type::DOUBLE: return "number";
    case simdjson::dom::element_type::STRING: return "string";
    case simdjson::dom::element_type::BOOL: return "boolean";
    case simdjson::dom::element_type::NULL_VALUE: return "null";
  }
  return "?";
}

// Whether the value is of the type of `out`, which then has it.
template <typename Value>
bool Take(const Json& value, Value& out) {
  return value.get(out) == simdjson::SUCCESS;
}

bool Take(const Json& value, std::string& out) {
  std::string_view text;
  if (!Take(value, text)) return false;
  out.assign(text.data(), text.size());
  return true;
}

}  // namespace

FieldReader::FieldReader(absl::string_view blob, std::string what)
    : parser_(std::make_unique<simdjson::dom::parser>()), what_(std::move(what)) {
  Json root;
  simdjson::error_code error = parser_->parse(blob.data(), blob.size()).get(root);
  if (error == simdjson::SUCCESS) {
    Open(root);
  } else {
    status_ = absl::DataLossError(
        absl::StrCat("stored record of ", what_, ": it is no JSON: ", simdjson::error_message(error)));
  }
}

FieldReader::FieldReader(const Json& object, std::string what) : what_(std::move(what)) { Open(object); }

void FieldReader::Open(const Json& value) {
  if (Take(value, object_)) return;
  status_ = absl::DataLossError(
      absl::StrCat("stored record of ", what_, ": expected a JSON object, found ", TypeName(value)));
}

std::optional<Json> FieldReader::FindAny(const char* name) const {
  if (!status_.ok()) return std::nullopt;
  Json value;
  if (object_.at_key(name).get(value) != simdjson::SUCCESS) return std::nullopt;
  return value;
}

std::optional<Json> FieldReader::Find(const char* name) const {
  std::optional<Json> value = FindAny(name);
  return value.has_value() && !value->is_null() ? value : std::nullopt;
}

void FieldReader::Fail(const char* name, absl::string_view expected, absl::string_view found) {
  if (!status_.ok()) return;
  status_ = absl::DataLossError(
      absl::StrCat("stored record of ", what_, ": field '", name, "': expected ", expected, ", found ", found));
}

void FieldReader::Merge(const absl::Status& nested) {
  if (status_.ok()) status_ = nested;
}

void FieldReader::CheckVersion(int newest) {
  int version = 0;
  Read("version", version);
  if (status_.ok() && version > newest) {
    status_ = absl::FailedPreconditionError(
        absl::StrCat("stored record of ", what_, " has version ", version, ", this program knows versions up to ",
                     newest, ": a newer llm-coordinator wrote it; run that one, or restore a backup made before the "
                     "upgrade"));
  } else if (version < 1) {
    Fail("version", "at least 1", absl::StrCat(version));
  }
}

void FieldReader::ForEach(const char* name, const std::function<absl::Status(const Json&)>& read_item) {
  std::optional<Json> value = Find(name);
  if (!value.has_value()) return;
  simdjson::dom::array items;
  if (!Take(*value, items)) return Fail(name, "an array", TypeName(*value));
  for (Json item : items) Merge(read_item(item));
}

void FieldReader::Read(const char* name, std::string& out) {
  std::optional<Json> value = Find(name);
  if (value.has_value() && !Take(*value, out)) Fail(name, "a string", TypeName(*value));
}

void FieldReader::Read(const char* name, bool& out) {
  std::optional<Json> value = Find(name);
  if (value.has_value() && !Take(*value, out)) Fail(name, "a boolean", TypeName(*value));
}

void FieldReader::Read(const char* name, int& out) {
  int64_t wide = out;
  Read(name, wide);
  if (wide < std::numeric_limits<int>::min() || wide > std::numeric_limits<int>::max()) {
    return Fail(name, "a 32-bit number", absl::StrCat(wide));
  }
  out = static_cast<int>(wide);
}

void FieldReader::Read(const char* name, int64_t& out) {
  std::optional<Json> value = Find(name);
  if (value.has_value() && !Take(*value, out)) Fail(name, "an integer", TypeName(*value));
}

void FieldReader::Read(const char* name, double& out) {
  std::optional<Json> value = Find(name);
  if (value.has_value() && !Take(*value, out)) Fail(name, "a number", TypeName(*value));
}

void FieldReader::Read(const char* name, std::map<std::string, std::string>& out) {
  std::optional<Json> value = Find(name);
  if (!value.has_value()) return;
  simdjson::dom::object members;
  if (!Take(*value, members)) return Fail(name, "an object of strings", TypeName(*value));
  for (auto [key, text] : members) {
    if (!Take(text, out[std::string(key)])) return Fail(name, "an object of strings", TypeName(text));
  }
}

void FieldReader::Read(const char* name, std::map<std::string, int>& out) {
  std::optional<Json> value = Find(name);
  if (!value.has_value()) return;
  simdjson::dom::object members;
  if (!Take(*value, members)) return Fail(name, "an object of numbers", TypeName(*value));
  FieldReader numbers(*value, what_);
  for (auto member : members) {
    std::string key(member.key);
    numbers.Read(key.c_str(), out[key]);
  }
  Merge(numbers.status());
}

void FieldReader::ReadTime(const char* name, absl::Time& out) {
  if (!Find(name)) return;
  int64_t nanos = 0;
  Read(name, nanos);
  out = absl::FromUnixNanos(nanos);
}

void FieldReader::ReadDuration(const char* name, absl::Duration& out) {
  std::optional<Json> value = FindAny(name);
  if (!value.has_value()) return;
  if (value->is_null()) {
    out = absl::InfiniteDuration();
    return;
  }
  int64_t nanos = 0;
  Read(name, nanos);
  out = absl::Nanoseconds(nanos);
}

}  // namespace llmctl::store
