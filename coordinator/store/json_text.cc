#include "coordinator/store/json_text.h"

#include <cmath>
#include <cstddef>

#include "absl/strings/str_format.h"

#include "common/base/check.h"

namespace llmctl::store {
namespace {

constexpr absl::string_view kReplacement = "\xEF\xBF\xBD";

// Bytes of the UTF-8 character that `text` begins with; 0 if it begins with none. Overlong forms, surrogates and what
// lies beyond U+10FFFF are none.
size_t CharacterBytes(absl::string_view text) {
  auto byte = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  auto follows = [&](size_t i, unsigned least = 0x80, unsigned most = 0xBF) {
    return byte(i) >= least && byte(i) <= most;
  };
  unsigned lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) return follows(1) ? 2 : 0;
  if (lead >= 0xE0 && lead <= 0xEF) {
    bool second = lead == 0xE0 ? follows(1, 0xA0) : lead == 0xED ? follows(1, 0x80, 0x9F) : follows(1);
    return second && follows(2) ? 3 : 0;
  }
  if (lead >= 0xF0 && lead <= 0xF4) {
    bool second = lead == 0xF0 ? follows(1, 0x90) : lead == 0xF4 ? follows(1, 0x80, 0x8F) : follows(1);
    return second && follows(2) && follows(3) ? 4 : 0;
  }
  return 0;
}

void AppendString(absl::string_view value, std::string& out) {
  out += '"';
  for (size_t i = 0; i < value.size();) {
    auto c = static_cast<unsigned char>(value[i]);
    size_t plain = i;
    while (plain < value.size() && static_cast<signed char>(value[plain]) >= 0x20 && value[plain] != '"' &&
           value[plain] != '\\') {
      ++plain;
    }
    if (plain > i) {
      out.append(value.data() + i, plain - i);
      i = plain;
    } else if (c == '"' || c == '\\') {
      out += '\\';
      out += value[i++];
    } else if (c < 0x20) {
      absl::StrAppendFormat(&out, "\\u%04x", c);
      ++i;
    } else if (size_t bytes = CharacterBytes(value.substr(i)); bytes > 0) {
      out.append(value.data() + i, bytes);
      i += bytes;
    } else {
      out.append(kReplacement.data(), kReplacement.size());
      ++i;
    }
  }
  out += '"';
}

}  // namespace

JsonText::JsonText(std::initializer_list<JsonMember> members) {
  size_t bytes = 2;
  for (const JsonMember& member : members) bytes += member.name.size() + member.value.text_.size() + 4;
  text_.reserve(bytes);
  text_ = "{}";
  for (const JsonMember& member : members) Append(member.name, member.value);
}

JsonText::JsonText(double value)
    : text_(std::isfinite(value) ? absl::StrFormat("%.17g", value) : std::string("null")) {}

JsonText::JsonText(absl::string_view value) {
  text_.reserve(value.size() + 2);
  AppendString(value, text_);
}

JsonText JsonText::Array() {
  JsonText array(nullptr);
  array.text_ = "[]";
  return array;
}

void JsonText::push_back(const JsonText& item) {
  CHECK(text_.front() == '[') << "only an array has items";
  text_.back() = ',';
  if (text_.size() == 2) text_.pop_back();
  text_ += item.text_;
  text_ += ']';
}

void JsonText::Set(absl::string_view name, const JsonText& value) {
  CHECK(text_.front() == '{') << "only an object has members";
  Append(name, value);
}

void JsonText::Append(absl::string_view name, const JsonText& value) {
  text_.back() = ',';
  if (text_.size() == 2) text_.pop_back();
  AppendString(name, text_);
  text_ += ':';
  text_ += value.text_;
  text_ += '}';
}

}  // namespace llmctl::store
