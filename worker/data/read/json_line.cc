#include "worker/data/read/json_line.h"

#include <optional>
#include <utility>

#include <nlohmann/json.hpp>
#include <simdjson.h>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

#include "common/json/strict_json.h"
#include "worker/data/normalize/utf8_repair.h"
#include "worker/data/read/field_path.h"

namespace llmctl::data {
namespace {

// A parser that has met a longer line is given back: it keeps several times the line.
constexpr size_t kLineBytesKept = size_t{8} << 20;

LineText Refused(Reason reason, absl::string_view detail = "") {
  LineText out;
  out.reason = reason;
  out.detail = std::string(detail);
  return out;
}

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

// Whether any escape of the line may be a half of a surrogate pair.
bool MayHaveSurrogates(absl::string_view line) {
  for (size_t at = line.find('\\'); at != absl::string_view::npos; at = line.find('\\', at + 2)) {
    if (at + 2 < line.size() && line[at + 1] == 'u' && (line[at + 2] | 0x20) == 'd') return true;
  }
  return false;
}

// The field that a path of names leads to; a reason if there is none, or more than one.
struct FoundField {
  simdjson::dom::element value;
  std::optional<Reason> fault;
};

FoundField FindField(simdjson::dom::object object, const std::vector<std::string>& path) {
  FoundField out;
  for (size_t depth = 0; depth < path.size(); ++depth) {
    if (depth > 0 && out.value.get(object)) return {out.value, Reason::kFieldMissing};
    int found = 0;
    for (simdjson::dom::key_value_pair field : object) {
      if (field.key != std::string_view(path[depth])) continue;
      out.value = field.value;
      ++found;
    }
    if (found == 0) return {out.value, Reason::kFieldMissing};
    if (found > 1) return {out.value, Reason::kFieldRepeated};
  }
  return out;
}

const nlohmann::json* FindField(const nlohmann::json& root, const std::vector<std::string>& path) {
  const nlohmann::json* value = &root;
  for (const std::string& name : path) {
    if (!value->is_object()) return nullptr;
    auto field = value->find(name);
    if (field == value->end()) return nullptr;
    value = &*field;
  }
  return value;
}

// `digits` holds it where it is a number.
absl::string_view IdText(simdjson::dom::element value, std::string& digits, Repairs& repairs) {
  std::string_view text;
  if (!value.get(text)) return {text.data(), text.size()};
  int64_t number = 0;
  uint64_t large = 0;
  digits.clear();
  if (!value.get(number)) {
    absl::StrAppend(&digits, number);
  } else if (!value.get(large)) {
    absl::StrAppend(&digits, large);
  } else if (!value.is_null()) {
    ++repairs.unusable_ids;
  }
  return digits;
}

}  // namespace

const size_t JsonLineParser::kPadding = simdjson::SIMDJSON_PADDING;

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
  std::string repaired;  // the line
  std::string text;      // where the parser does not keep it
  std::string id;        // likewise
};

JsonLineParser::JsonLineParser(const ReadSettings& settings)
    : settings_(settings),
      text_path_(SplitFieldPath(settings.text_field)),
      id_path_(settings.id_field.empty() ? std::vector<std::string>() : SplitFieldPath(settings.id_field)),
      simd_(std::make_unique<Simd>()) {}
JsonLineParser::~JsonLineParser() = default;

LineText JsonLineParser::Parse(absl::string_view line, Repairs& repairs) {
  if (simd_->parser.capacity() > kLineBytesKept) simd_ = std::make_unique<Simd>();
  if (MayHaveSurrogates(line)) return ParseRepaired(line, repairs);
  LineText out = ParsePadded(line, repairs);
  return out.not_utf8 ? ParseRepaired(line, repairs) : out;
}

LineText JsonLineParser::ParseRepaired(absl::string_view line, Repairs& repairs) {
  std::string& repaired = simd_->repaired;
  repaired.assign(line.data(), line.size());
  if (settings_.invalid_utf8 == InvalidUtf8Policy::kReplace) {
    repairs.invalid_utf8 += ReplaceInvalidUtf8(repaired);
  } else if (size_t bad = FindInvalidUtf8(repaired); bad != absl::string_view::npos) {
    LineText out = Refused(Reason::kInvalidUtf8);
    out.byte = bad;
    return out;
  }
  int64_t lone = ReplaceLoneSurrogates(repaired);
  if (lone > 0 && settings_.lone_surrogates == LoneSurrogatePolicy::kReject) return Refused(Reason::kLoneSurrogate);
  repairs.lone_surrogates += lone;
  repaired.reserve(repaired.size() + kPadding);
  return ParsePadded(repaired, repairs);
}

LineText JsonLineParser::ParsePadded(absl::string_view line, Repairs& repairs) {
  simdjson::dom::element root;
  simdjson::error_code error =
      simd_->parser.parse(line.data(), line.size(), /*realloc_if_needed=*/false).get(root);
  // An integer beyond 64 bits somewhere: the text may be sound all the same.
  if (error == simdjson::NUMBER_ERROR) return ParseWithBigNumbers(line, repairs);
  if (error) {
    size_t end = EndOfObject(line);
    bool first_is_sound = end < line.size() && ParsesWhole(line.substr(0, end));
    LineText out = first_is_sound ? Refused(Reason::kTrailingContent)
                                  : Refused(Reason::kInvalidJson, simdjson::error_message(error));
    out.not_utf8 = error == simdjson::UTF8_ERROR;
    return out;
  }
  simdjson::dom::object object;
  if (root.get(object)) return Refused(Reason::kNotAnObject);
  FoundField field = FindField(object, text_path_);
  if (field.fault) return Refused(*field.fault);
  if (field.value.is_null()) return Refused(Reason::kFieldNull);
  std::string_view text;
  if (field.value.get(text)) return Refused(Reason::kFieldNotAString);
  LineText out;
  out.ok = true;
  out.text = {text.data(), text.size()};
  if (id_path_.empty()) return out;
  FoundField id = FindField(object, id_path_);
  if (!id.fault) out.id = IdText(id.value, simd_->id, repairs);
  return out;
}

// Integers beyond 64 bits are beyond what simdjson parses.
LineText JsonLineParser::ParseWithBigNumbers(absl::string_view line, Repairs& repairs) {
  absl::StatusOr<nlohmann::json> root = ParseStrictJson(line, "line");
  if (!root.ok()) return Refused(Reason::kInvalidJson, root.status().message());
  if (!root->is_object()) return Refused(Reason::kNotAnObject);
  const nlohmann::json* value = FindField(*root, text_path_);
  if (value == nullptr) return Refused(Reason::kFieldMissing);
  if (value->is_null()) return Refused(Reason::kFieldNull);
  if (!value->is_string()) return Refused(Reason::kFieldNotAString);
  LineText out;
  out.ok = true;
  simd_->text = value->get<std::string>();
  out.text = simd_->text;
  const nlohmann::json* id = id_path_.empty() ? nullptr : FindField(*root, id_path_);
  if (id == nullptr || id->is_null()) return out;
  if (id->is_string() || id->is_number_integer()) {
    simd_->id = id->is_string() ? id->get<std::string>() : id->dump();
    out.id = simd_->id;
  } else {
    ++repairs.unusable_ids;
  }
  return out;
}

}  // namespace llmctl::data
