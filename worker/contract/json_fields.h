// One description of a struct's fields, read in both directions.
//
// A struct that crosses the contract has one function
//
//   template <typename V>
//   void VisitFields(V& visit, FieldsOf<Progress> auto& m) { visit("step", m.step); visit("loss", m.loss); }
//
// FieldWriter turns it into JSON, FieldReader back, so the two directions cannot drift apart. Reading is strict:
// a field that is missing, of another type or out of its C++ type's range is an error that names its path
// ("training.optimizer.beta1"); std::optional is the only field that may be absent. JSON has no NaN or
// infinity, yet a loss can be one: they travel as the strings "nan", "inf" and "-inf".
//
// Internal to worker/contract: nothing outside sees the JSON library through it.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>
#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

#include "common/base/ids.h"

namespace llmctl::contract {

// Keeps the order of declaration, which is the order people read.
using Json = nlohmann::ordered_json;

// nullopt if `text` is not one JSON value.
std::optional<Json> ParseJson(absl::string_view text);

// Bytes that are no UTF-8 (a path, an exception's text) become U+FFFD instead of an exception.
std::string DumpJson(const Json& json, int indent = -1);

// M is one of Ts, const or not: so that one function serves writer and reader.
template <typename M, typename... Ts>
concept FieldsOf = (std::is_same_v<std::remove_const_t<M>, Ts> || ...);

template <typename V>
void VisitFields(V& visit, FieldsOf<GenerationId> auto& m) {
  visit("job", m.job);
  visit("attempt", m.attempt);
  visit("generation", m.generation);
}

class FieldWriter {
 public:
  template <typename T>
  static Json Write(const T& object) {
    FieldWriter writer;
    VisitFields(writer, object);
    return std::move(writer.json_);
  }

  template <typename T>
  void operator()(const char* name, const T& value) {
    json_[name] = ToJson(value);
  }
  template <typename T>
  void operator()(const char* name, const std::optional<T>& value) {
    if (value.has_value()) json_[name] = ToJson(*value);
  }
  void Bytes(const char* name, const std::string& value) { json_[name] = absl::Base64Escape(value); }
  // `names[i]` stands for enumerator i.
  template <typename E, size_t n>
  void Enum(const char* name, const E& value, const char* const (&names)[n]) {
    json_[name] = names[static_cast<size_t>(value)];
  }

 private:
  static Json ToJson(double value) {
    if (std::isnan(value)) return "nan";
    if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
    return value;
  }
  static Json ToJson(const JobId& id) { return id.value(); }
  template <typename T>
  static Json ToJson(const std::vector<T>& values) {
    Json array = Json::array();
    for (const T& value : values) array.push_back(ToJson(value));
    return array;
  }
  template <typename T>
  static Json ToJson(const T& value) {
    if constexpr (std::is_arithmetic_v<T> || std::is_same_v<T, std::string>) {
      return value;
    } else {
      return Write(value);
    }
  }

  Json json_ = Json::object();
};

class FieldReader {
 public:
  enum class UnknownFields { kIgnore, kRefuse };

  // The first fault found in `json`, with `path` before the names of its fields.
  template <typename T>
  static absl::Status Read(const Json& json, const std::string& path, UnknownFields unknown, T& object) {
    if (!json.is_object()) return Mistyped(path, "an object", json);
    FieldReader reader(json, path, unknown);
    VisitFields(reader, object);
    return reader.Finish();
  }

  template <typename T>
  void operator()(const char* name, T& out) {
    if (const Json* value = Find(name)) Keep(FromJson(*value, PathOf(name), out));
  }
  template <typename T>
  void operator()(const char* name, std::optional<T>& out) {
    out.reset();
    if (!json_.contains(name)) {
      names_.push_back(name);
      return;
    }
    (*this)(name, out.emplace());
  }
  void Bytes(const char* name, std::string& out) {
    std::string text;
    (*this)(name, text);
    if (status_.ok() && !absl::Base64Unescape(text, &out)) {
      Keep(absl::InvalidArgumentError(absl::StrCat(PathOf(name), ": expected base64")));
    }
  }
  template <typename E, size_t n>
  void Enum(const char* name, E& out, const char* const (&names)[n]) {
    std::string text;
    (*this)(name, text);
    if (!status_.ok()) return;
    for (size_t i = 0; i < n; ++i) {
      if (text == names[i]) {
        out = static_cast<E>(i);
        return;
      }
    }
    Keep(absl::InvalidArgumentError(absl::StrCat(PathOf(name), ": unknown value \"", text, "\"")));
  }

 private:
  FieldReader(const Json& json, const std::string& path, UnknownFields unknown)
      : json_(json), path_(path), unknown_(unknown) {}

  std::string PathOf(absl::string_view name) const {
    return path_.empty() ? std::string(name) : absl::StrCat(path_, ".", name);
  }

  static absl::Status Mistyped(absl::string_view path, absl::string_view expected, const Json& found) {
    std::string text = DumpJson(found);
    // Enough to recognise it; a hostile peer does not choose how long our messages are.
    if (text.size() > 60) text = absl::StrCat(text.substr(0, 60), "...");
    return absl::InvalidArgumentError(absl::StrCat(path, ": expected ", expected, ", found ", text));
  }

  void Keep(absl::Status status) {
    if (status_.ok()) status_ = std::move(status);
  }

  const Json* Find(const char* name) {
    names_.push_back(name);
    if (!status_.ok()) return nullptr;
    auto it = json_.find(name);
    if (it == json_.end()) {
      Keep(absl::InvalidArgumentError(absl::StrCat(PathOf(name), ": missing")));
      return nullptr;
    }
    return &*it;
  }

  absl::Status Finish() {
    if (!status_.ok() || unknown_ == UnknownFields::kIgnore) return status_;
    for (const auto& [key, value] : json_.items()) {
      bool known = false;
      for (const char* name : names_) known = known || key == name;
      if (!known) return absl::InvalidArgumentError(absl::StrCat(PathOf(key), ": unknown field"));
    }
    return status_;
  }

  absl::Status FromJson(const Json& json, const std::string& path, bool& out) const {
    if (!json.is_boolean()) return Mistyped(path, "true or false", json);
    out = json.get<bool>();
    return absl::OkStatus();
  }
  absl::Status FromJson(const Json& json, const std::string& path, std::string& out) const {
    if (!json.is_string()) return Mistyped(path, "a string", json);
    out = json.get_ref<const std::string&>();
    return absl::OkStatus();
  }
  absl::Status FromJson(const Json& json, const std::string& path, JobId& out) const {
    std::string text;
    if (absl::Status status = FromJson(json, path, text); !status.ok()) return status;
    out = JobId(std::move(text));
    return absl::OkStatus();
  }
  absl::Status FromJson(const Json& json, const std::string& path, double& out) const {
    if (json.is_number()) {
      out = json.get<double>();
      return absl::OkStatus();
    }
    if (json == "nan") {
      out = std::numeric_limits<double>::quiet_NaN();
    } else if (json == "inf" || json == "-inf") {
      out = json == "inf" ? std::numeric_limits<double>::infinity() : -std::numeric_limits<double>::infinity();
    } else {
      return Mistyped(path, "a number", json);
    }
    return absl::OkStatus();
  }
  template <typename T>
    requires std::is_integral_v<T>
  absl::Status FromJson(const Json& json, const std::string& path, T& out) const {
    if (!json.is_number_integer()) return Mistyped(path, "a whole number", json);
    bool fits = json.is_number_unsigned() ? std::in_range<T>(json.get<uint64_t>())
                                          : std::in_range<T>(json.get<int64_t>());
    if (!fits) {
      return Mistyped(path, absl::StrCat("a whole number from ", std::numeric_limits<T>::min(), " to ",
                                         std::numeric_limits<T>::max()), json);
    }
    out = json.get<T>();
    return absl::OkStatus();
  }
  template <typename T>
  absl::Status FromJson(const Json& json, const std::string& path, std::vector<T>& out) const {
    if (!json.is_array()) return Mistyped(path, "a list", json);
    out.clear();
    for (const Json& element : json) {
      std::string element_path = absl::StrCat(path, "[", out.size(), "]");
      absl::Status status = FromJson(element, element_path, out.emplace_back());
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }
  template <typename T>
    requires std::is_class_v<T>
  absl::Status FromJson(const Json& json, const std::string& path, T& out) const {
    return Read(json, path, unknown_, out);
  }

  const Json& json_;
  const std::string& path_;
  const UnknownFields unknown_;
  std::vector<const char*> names_;  // described so far
  absl::Status status_;
};

}  // namespace llmctl::contract
