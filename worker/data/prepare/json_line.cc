#include "worker/data/prepare/json_line.h"

#include <utility>

#include <simdjson.h>

#include "absl/strings/ascii.h"

#include "common/json/strict_json.h"

namespace llmctl::data {
namespace {

LineText Refused(Reason reason, absl::string_view detail = "") { return {false, "", reason, std::string(detail)}; }

// The value of \uXXXX at `at`, or -1.
int EscapedUnit(absl::string_view line, size_t at) {
  if (at + 6 > line.size() || line[at] != '\\' || line[at + 1] != 'u') return -1;
  int value = 0;
  for (char c : line.substr(at + 2, 4)) {
    if (!absl::ascii_isxdigit(c)) return -1;
    value = value * 16 + (c <= '9' ? c - '0' : absl::ascii_tolower(c) - 'a' + 10);
  }
  return value;
}

// Where the object that begins the line ends, judged by its brackets and strings alone.
size_t EndOfObject(absl::string_view line) {
  int depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < line.size(); ++i) {
    char c = line[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{') {
      ++depth;
    } else if (c == '}' && --depth == 0) {
      return i + 1;
    }
  }
  return line.size();
}

bool ParsesWhole(absl::string_view text) {
  simdjson::dom::parser parser;
  return parser.parse(text.data(), text.size()).error() == simdjson::SUCCESS;
}

bool IsHigh(int unit) { return unit >= 0xD800 && unit <= 0xDBFF; }
bool IsLow(int unit) { return unit >= 0xDC00 && unit <= 0xDFFF; }

}  // namespace

absl::string_view ReasonName(Reason reason) {
  switch (reason) {
    case Reason::kInvalidUtf8: return "invalid_utf8";
    case Reason::kInvalidJson: return "invalid_json";
    case Reason::kTrailingContent: return "trailing_content";
    case Reason::kNotAnObject: return "not_an_object";
    case Reason::kFieldMissing: return "text_missing";
    case Reason::kFieldRepeated: return "text_repeated";
    case Reason::kFieldNull: return "text_null";
    case Reason::kFieldNotAString: return "text_not_a_string";
    case Reason::kEmpty: return "empty";
    case Reason::kLineTooLong: return "line_too_long";
    case Reason::kUtf16File: return "utf16_file";
    case Reason::kDuplicate: return "duplicate";
  }
  return "unknown";
}

int64_t ReplaceLoneSurrogates(std::string& line) {
  int64_t replaced = 0;
  for (size_t at = line.find('\\'); at != std::string::npos; at = line.find('\\', at)) {
    int unit = EscapedUnit(line, at);
    if (unit < 0) {
      at += 2;  // another escape; of "\\" both characters
    } else if (IsHigh(unit) && IsLow(EscapedUnit(line, at + 6))) {
      at += 12;
    } else {
      if (IsHigh(unit) || IsLow(unit)) {
        line.replace(at, 6, "\\uFFFD");
        ++replaced;
      }
      at += 6;
    }
  }
  return replaced;
}

struct JsonLineParser::Simd {
  simdjson::dom::parser parser;
  std::string buffer;  // the line and the padding that the parser reads over
};

JsonLineParser::JsonLineParser(std::string text_field)
    : text_field_(std::move(text_field)), simd_(std::make_unique<Simd>()) {}
JsonLineParser::~JsonLineParser() = default;

LineText JsonLineParser::Parse(absl::string_view line, Repairs& repairs) {
  std::string& buffer = simd_->buffer;
  buffer.assign(line.data(), line.size());
  repairs.lone_surrogates += ReplaceLoneSurrogates(buffer);
  size_t bytes = buffer.size();
  buffer.append(simdjson::SIMDJSON_PADDING, ' ');
  simdjson::dom::element root;
  simdjson::error_code error = simd_->parser.parse(buffer.data(), bytes, /*realloc_if_needed=*/false).get(root);
  // An integer beyond 64 bits somewhere: the text may be sound all the same.
  if (error == simdjson::NUMBER_ERROR) return ParseWithBigNumbers(absl::string_view(buffer).substr(0, bytes));
  if (error) {
    size_t end = EndOfObject(absl::string_view(buffer).substr(0, bytes));
    bool first_is_sound = end < bytes && ParsesWhole(absl::string_view(buffer).substr(0, end));
    return first_is_sound ? Refused(Reason::kTrailingContent)
                          : Refused(Reason::kInvalidJson, simdjson::error_message(error));
  }
  simdjson::dom::object object;
  if (root.get(object)) return Refused(Reason::kNotAnObject);
  int found = 0;
  simdjson::dom::element value;
  for (simdjson::dom::key_value_pair field : object) {
    if (field.key != std::string_view(text_field_)) continue;
    value = field.value;
    ++found;
  }
  if (found == 0) return Refused(Reason::kFieldMissing);
  if (found > 1) return Refused(Reason::kFieldRepeated);
  if (value.is_null()) return Refused(Reason::kFieldNull);
  std::string_view text;
  if (value.get(text)) return Refused(Reason::kFieldNotAString);
  return {true, std::string(text), Reason::kInvalidJson, ""};
}

LineText JsonLineParser::ParseWithBigNumbers(absl::string_view line) const {
  absl::StatusOr<nlohmann::json> root = ParseStrictJson(line, "line");
  if (!root.ok()) return Refused(Reason::kInvalidJson, root.status().message());
  if (!root->is_object()) return Refused(Reason::kNotAnObject);
  auto value = root->find(text_field_);
  if (value == root->end()) return Refused(Reason::kFieldMissing);
  if (value->is_null()) return Refused(Reason::kFieldNull);
  if (!value->is_string()) return Refused(Reason::kFieldNotAString);
  return {true, value->get<std::string>(), Reason::kInvalidJson, ""};
}

}  // namespace llmctl::data
