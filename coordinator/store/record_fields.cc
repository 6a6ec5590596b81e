#include "coordinator/store/record_fields.h"

#include <limits>
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

FieldReader::FieldReader(const nlohmann::json& object, std::string what) : object_(object), what_(std::move(what)) {
  if (!object.is_object()) {
    status_ = absl::DataLossError(absl::StrCat("stored record of ", what_, ": expected a JSON object, found ",
                                               object.type_name()));
  }
}

const nlohmann::json* FieldReader::Find(const char* name) const {
  if (!status_.ok()) return nullptr;
  auto it = object_.find(name);
  return it == object_.end() || it->is_null() ? nullptr : &*it;
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

void FieldReader::ForEach(const char* name, const std::function<absl::Status(const nlohmann::json&)>& read_item) {
  const nlohmann::json* array = Find(name);
  if (!array) return;
  if (!array->is_array()) return Fail(name, "an array", array->type_name());
  for (const nlohmann::json& item : *array) Merge(read_item(item));
}

void FieldReader::Read(const char* name, std::string& out) {
  const nlohmann::json* value = Find(name);
  if (!value) return;
  if (!value->is_string()) return Fail(name, "a string", value->type_name());
  out = value->get_ref<const std::string&>();
}

void FieldReader::Read(const char* name, bool& out) {
  const nlohmann::json* value = Find(name);
  if (!value) return;
  if (!value->is_boolean()) return Fail(name, "a boolean", value->type_name());
  out = value->get<bool>();
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
  const nlohmann::json* value = Find(name);
  if (!value) return;
  if (!value->is_number_integer()) return Fail(name, "an integer", value->type_name());
  out = value->get<int64_t>();
}

void FieldReader::Read(const char* name, double& out) {
  const nlohmann::json* value = Find(name);
  if (!value) return;
  if (!value->is_number()) return Fail(name, "a number", value->type_name());
  out = value->get<double>();
}

void FieldReader::Read(const char* name, std::map<std::string, std::string>& out) {
  const nlohmann::json* value = Find(name);
  if (!value) return;
  if (!value->is_object()) return Fail(name, "an object of strings", value->type_name());
  for (const auto& [key, text] : value->items()) {
    if (!text.is_string()) return Fail(name, "an object of strings", text.type_name());
    out[key] = text.get_ref<const std::string&>();
  }
}

void FieldReader::ReadTime(const char* name, absl::Time& out) {
  if (!Find(name)) return;
  int64_t nanos = 0;
  Read(name, nanos);
  out = absl::FromUnixNanos(nanos);
}

void FieldReader::ReadDuration(const char* name, absl::Duration& out) {
  if (!status_.ok()) return;
  auto it = object_.find(name);
  if (it == object_.end()) return;
  if (it->is_null()) {
    out = absl::InfiniteDuration();
    return;
  }
  int64_t nanos = 0;
  Read(name, nanos);
  out = absl::Nanoseconds(nanos);
}

}  // namespace llmctl::store
