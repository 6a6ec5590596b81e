#include "common/json/strict_json.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace llmctl {
namespace {

using nlohmann::json;

const json& EmptyObject() {
  static const json* const empty = new json(json::object());
  return *empty;
}

// Walks the text without building anything and keeps the first reason to refuse it.
class StrictChecker : public nlohmann::json_sax<json> {
 public:
  const std::string& problem() const { return problem_; }

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(size_t) override { return Enter(); }
  bool key(string_t& name) override {
    if (keys_.back().insert(name).second) return true;
    problem_ = absl::StrCat("the key \"", name, "\" occurs twice in one object");
    return false;
  }
  bool end_object() override { return Leave(); }
  bool start_array(size_t) override { return Enter(); }
  bool end_array() override { return Leave(); }
  bool parse_error(size_t position, const std::string& token, const nlohmann::detail::exception&) override {
    problem_ = absl::StrCat("not JSON at byte ", position);
    if (!token.empty() && token.size() < 40) absl::StrAppend(&problem_, " (near '", token, "')");
    return false;
  }

 private:
  bool Enter() {
    keys_.emplace_back();
    if (keys_.size() <= static_cast<size_t>(kJsonDepthMax)) return true;
    problem_ = absl::StrCat("nested deeper than ", kJsonDepthMax, " levels");
    return false;
  }
  bool Leave() {
    keys_.pop_back();
    return true;
  }

  std::vector<std::set<std::string>> keys_;
  std::string problem_;
};

}  // namespace

absl::StatusOr<json> ParseStrictJson(absl::string_view text, absl::string_view what) {
  StrictChecker checker;
  if (!json::sax_parse(text.begin(), text.end(), &checker)) {
    return absl::InvalidArgumentError(absl::StrCat(what, ": ", checker.problem()));
  }
  json value = json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  if (value.is_discarded()) return absl::InvalidArgumentError(absl::StrCat(what, ": not JSON"));
  return value;
}

std::string JsonText(const json& value, bool indented) {
  return value.dump(indented ? 2 : -1, ' ', /*ensure_ascii=*/false, json::error_handler_t::replace);
}

void JsonErrors::Add(absl::string_view where, absl::string_view problem) {
  if (status_.ok()) status_ = absl::InvalidArgumentError(absl::StrCat(where, ": ", problem));
}

ObjectReader::ObjectReader(const json& value, std::string where, JsonErrors& errors)
    : value_(&value), where_(std::move(where)), errors_(&errors) {
  if (value.is_object()) return;
  errors_->Add(where_, absl::StrCat("expected an object, found ", value.type_name()));
  value_ = &EmptyObject();
}

bool ObjectReader::Has(const char* key) const { return value_->contains(key); }

void ObjectReader::Fail(const char* key, absl::string_view problem) {
  errors_->Add(absl::StrCat(where_, ".", key), problem);
}

const json* ObjectReader::Get(const char* key, Type type, absl::string_view expected) {
  asked_.insert(key);
  auto at = value_->find(key);
  if (at == value_->end()) {
    Fail(key, absl::StrCat("is missing; expected ", expected));
    return nullptr;
  }
  bool same = at->type() == type || (type == Type::number_float && at->is_number());
  if (same) return &*at;
  Fail(key, absl::StrCat("expected ", expected, ", found ", at->type_name()));
  return nullptr;
}

std::string ObjectReader::String(const char* key) {
  const json* value = Get(key, Type::string, "a string");
  return value ? value->get<std::string>() : std::string();
}

bool ObjectReader::Bool(const char* key) {
  const json* value = Get(key, Type::boolean, "true or false");
  return value && value->get<bool>();
}

double ObjectReader::Number(const char* key) {
  const json* value = Get(key, Type::number_float, "a number");
  return value ? value->get<double>() : 0;
}

namespace {

// Whether `value` is an integer of at least `min` and at most `max`.
bool IntegerIn(const json& value, int64_t min, int64_t max) {
  if (value.is_number_unsigned()) {
    uint64_t number = value.get<uint64_t>();
    if (number > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) return false;
  } else if (!value.is_number_integer()) {
    return false;
  }
  int64_t number = value.get<int64_t>();
  return number >= min && number <= max;
}

std::string RangeText(int64_t min, int64_t max) {
  if (max == std::numeric_limits<int64_t>::max()) return absl::StrCat("an integer of at least ", min);
  return absl::StrCat("an integer from ", min, " to ", max);
}

}  // namespace

int64_t ObjectReader::Integer(const char* key, int64_t min, int64_t max) {
  const json* value = Get(key, Type::number_float, RangeText(min, max));
  if (value == nullptr) return 0;
  if (IntegerIn(*value, min, max)) return value->get<int64_t>();
  Fail(key, absl::StrCat("expected ", RangeText(min, max), ", found ", JsonText(*value, false)));
  return 0;
}

uint64_t ObjectReader::Unsigned(const char* key) {
  const json* value = Get(key, Type::number_unsigned, "an integer of at least 0");
  return value ? value->get<uint64_t>() : 0;
}

std::vector<int64_t> ObjectReader::Integers(const char* key, int64_t min) {
  std::vector<int64_t> out;
  const json* value = Get(key, Type::array, "an array of integers");
  if (value == nullptr) return out;
  for (const json& element : *value) {
    if (!IntegerIn(element, min, std::numeric_limits<int64_t>::max())) {
      Fail(key, absl::StrCat("expected integers of at least ", min, ", found ", JsonText(element, false)));
      return {};
    }
    out.push_back(element.get<int64_t>());
  }
  return out;
}

std::map<std::string, std::string> ObjectReader::Strings(const char* key) {
  std::map<std::string, std::string> out;
  const json* value = Get(key, Type::object, "an object of strings");
  if (value == nullptr) return out;
  for (const auto& [name, element] : value->items()) {
    if (!element.is_string()) {
      Fail(key, absl::StrCat("expected strings, found ", element.type_name(), " at \"", name, "\""));
      return {};
    }
    out[name] = element.get<std::string>();
  }
  return out;
}

ObjectReader ObjectReader::Object(const char* key) {
  const json* value = Get(key, Type::object, "an object");
  return ObjectReader(value ? *value : EmptyObject(), absl::StrCat(where_, ".", key), *errors_);
}

std::vector<ObjectReader> ObjectReader::Objects(const char* key) {
  std::vector<ObjectReader> out;
  const json* value = Get(key, Type::array, "an array of objects");
  if (value == nullptr) return out;
  for (const json& element : *value) {
    out.emplace_back(element, absl::StrCat(where_, ".", key, "[", out.size(), "]"), *errors_);
  }
  return out;
}

std::map<std::string, ObjectReader> ObjectReader::ObjectMap(const char* key) {
  std::map<std::string, ObjectReader> out;
  const json* value = Get(key, Type::object, "an object of objects");
  if (value == nullptr) return out;
  for (const auto& [name, element] : value->items()) {
    out.emplace(name, ObjectReader(element, absl::StrCat(where_, ".", key, ".", name), *errors_));
  }
  return out;
}

const json& ObjectReader::Raw(const char* key) {
  asked_.insert(key);
  auto at = value_->find(key);
  if (at != value_->end()) return *at;
  Fail(key, "is missing");
  return EmptyObject();
}

void ObjectReader::Finish() {
  for (const auto& [name, element] : value_->items()) {
    if (!asked_.contains(name)) {
      errors_->Add(where_, absl::StrCat("unknown field \"", name, "\": written by a newer version, or damaged"));
    }
  }
}

}  // namespace llmctl
