#include "client/output/yaml_text.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

#include "common/spec/scalar.h"

namespace llmctl::client {
namespace {

using Json = nlohmann::ordered_json;

// Conservative: letters, digits and a few marks that mean nothing to YAML where they stand.
bool IsPlain(const std::string& text) {
  constexpr absl::string_view kFirst = "/._", kInside = "/._-+@=";
  if (text.empty() || (!absl::ascii_isalnum(text[0]) && kFirst.find(text[0]) == kFirst.npos)) return false;
  for (char c : text) {
    if (!absl::ascii_isalnum(c) && kInside.find(c) == kInside.npos) return false;
  }
  return !spec::LooksLikeAnotherType(text);
}

// A JSON string is a YAML string in double quotes.
std::string Scalar(const Json& value) {
  if (value.is_string() && IsPlain(value.get_ref<const std::string&>())) return value.get<std::string>();
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

void Append(const Json& value, int indentation, std::string& out);

// What follows "name:" or "-".
void AppendNested(const Json& value, int indentation, std::string& out) {
  if (!value.is_structured() || value.empty()) {
    absl::StrAppend(&out, " ", value.is_structured() ? value.dump() : Scalar(value), "\n");
  } else {
    out.push_back('\n');
    Append(value, indentation, out);
  }
}

void AppendItem(const Json& item, int indentation, std::string& out) {
  std::string text;
  AppendNested(item, indentation + 2, text);
  if (text[0] == '\n') {
    // "- " takes the place of the first line's indentation.
    absl::StrAppend(&out, std::string(indentation, ' '), "- ", text.substr(1 + indentation + 2));
  } else {
    absl::StrAppend(&out, std::string(indentation, ' '), "-", text);
  }
}

void Append(const Json& value, int indentation, std::string& out) {
  if (value.is_array()) {
    for (const Json& item : value) AppendItem(item, indentation, out);
    return;
  }
  for (const auto& [name, item] : value.items()) {
    absl::StrAppend(&out, std::string(indentation, ' '), Scalar(Json(name)), ":");
    AppendNested(item, indentation + 2, out);
  }
}

}  // namespace

std::string ToYaml(const Json& value) {
  if (!value.is_structured() || value.empty()) {
    return absl::StrCat(value.is_structured() ? value.dump() : Scalar(value), "\n");
  }
  std::string out;
  Append(value, 0, out);
  return out;
}

}  // namespace llmctl::client
