// JSON files that other programs, disks or people may have damaged, read strictly.
//
// ParseStrictJson refuses what a lenient parser lets pass silently: a key that occurs twice, deep nesting,
// anything after the value, bytes that are not UTF-8. ObjectReader then takes an object apart field by field:
// a missing, mistyped, out-of-range or unknown field is an error that names the field's path.
//
//   JsonErrors errors;
//   ObjectReader root(value, "manifest.json", errors);
//   manifest.step = root.Integer("step", 0);
//   root.Finish();
//   if (!errors.status().ok()) return errors.status();
//
// The first error wins; getters return an empty value after it, so that reading code has no branches.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace llmctl {

inline constexpr int kJsonDepthMax = 32;

// InvalidArgument says at which byte and why. `what` names the text in messages, e.g. its path.
absl::StatusOr<nlohmann::json> ParseStrictJson(absl::string_view text, absl::string_view what);

// The text of `value`; bytes that are not UTF-8 become U+FFFD. Two spaces of indentation, or none on one line.
std::string JsonText(const nlohmann::json& value, bool indented);

class JsonErrors {
 public:
  const absl::Status& status() const { return status_; }
  void Add(absl::string_view where, absl::string_view problem);

 private:
  absl::Status status_;
};

class ObjectReader {
 public:
  // `value` and `errors` outlive the reader.
  ObjectReader(const nlohmann::json& value, std::string where, JsonErrors& errors);

  bool Has(const char* key) const;
  std::string String(const char* key);
  bool Bool(const char* key);
  double Number(const char* key);
  int64_t Integer(const char* key, int64_t min, int64_t max = std::numeric_limits<int64_t>::max());
  uint64_t Unsigned(const char* key);
  std::vector<int64_t> Integers(const char* key, int64_t min);
  std::map<std::string, std::string> Strings(const char* key);
  ObjectReader Object(const char* key);
  std::vector<ObjectReader> Objects(const char* key);              // an array of objects
  std::map<std::string, ObjectReader> ObjectMap(const char* key);  // an object of objects
  const nlohmann::json& Raw(const char* key);

  // Every field must have been asked for.
  void Finish();

  void Fail(const char* key, absl::string_view problem);
  const std::string& where() const { return where_; }

 private:
  using Type = nlohmann::json::value_t;
  // Null when missing or of another type, after noting the error.
  const nlohmann::json* Get(const char* key, Type type, absl::string_view expected);

  const nlohmann::json* value_;  // never null; an empty object if it was none
  std::string where_;
  JsonErrors* errors_;
  std::set<std::string> asked_;
};

}  // namespace llmctl
