// JSON as text, written as it is put together: {{"name", value}, ...} reads like the object it makes.
//
// A record is written with every change of its entity, and only read after a restart: a tree of values that is built
// to be printed and thrown away cost more than the rest of a commit. Bytes that are not UTF-8 (log tails) become
// U+FFFD, so that every record can be read again.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>

#include "absl/strings/string_view.h"

namespace llmctl::store {

struct JsonMember;

class JsonText {
 public:
  // An object, in the order given.
  JsonText(std::initializer_list<JsonMember> members);
  JsonText(std::nullptr_t) : text_("null") {}
  JsonText(bool value) : text_(value ? "true" : "false") {}
  JsonText(int value) : text_(std::to_string(value)) {}
  JsonText(int64_t value) : text_(std::to_string(value)) {}
  // As many digits as give the same number again; null if it is not finite.
  JsonText(double value);
  JsonText(const char* value) : JsonText(absl::string_view(value)) {}
  JsonText(const std::string& value) : JsonText(absl::string_view(value)) {}
  JsonText(absl::string_view value);
  template <typename Value>
  JsonText(const std::map<std::string, Value>& members) : text_("{}") {
    for (const auto& [name, value] : members) Append(name, JsonText(value));
  }

  // An empty array, for push_back().
  static JsonText Array();
  void push_back(const JsonText& item);
  // Adds a member to an object.
  void Set(absl::string_view name, const JsonText& value);

  const std::string& text() const { return text_; }

 private:
  void Append(absl::string_view name, const JsonText& value);

  std::string text_;
};

struct JsonMember {
  absl::string_view name;
  JsonText value;
};

}  // namespace llmctl::store
