#include "worker/data/dedup/text_units.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/strip.h"

namespace llmctl::data {
namespace {

// The end of the paragraph that begins at `at`, with the blank lines behind it.
size_t ParagraphEnd(absl::string_view text, size_t at) {
  bool blank = false;  // a blank line was seen
  while (at < text.size()) {
    size_t end = text.find('\n', at);
    end = end == absl::string_view::npos ? text.size() : end + 1;
    bool line_is_blank = absl::StripAsciiWhitespace(text.substr(at, end - at)).empty();
    if (blank && !line_is_blank) return at;
    blank |= line_is_blank;
    at = end;
  }
  return at;
}

size_t UnitEnd(absl::string_view text, TextUnit unit, size_t at) {
  if (unit == TextUnit::kDocument) return text.size();
  if (unit == TextUnit::kParagraph) return ParagraphEnd(text, at);
  size_t end = text.find('\n', at);
  return end == absl::string_view::npos ? text.size() : end + 1;
}

}  // namespace

const char* TextUnitName(TextUnit unit) {
  switch (unit) {
    case TextUnit::kDocument: return "document";
    case TextUnit::kParagraph: return "paragraph";
    case TextUnit::kLine: return "line";
  }
  return "";
}

void ForEachUnit(absl::string_view text, TextUnit unit,
                 absl::FunctionRef<void(uint64_t number, absl::string_view compared)> take) {
  if (unit == TextUnit::kDocument) {
    take(0, text);
    return;
  }
  uint64_t number = 0;
  for (size_t at = 0; at < text.size();) {
    size_t end = UnitEnd(text, unit, at);
    take(number++, absl::StripAsciiWhitespace(text.substr(at, end - at)));
    at = end;
  }
}

std::string RemoveUnits(absl::string_view text, TextUnit unit, absl::Span<const uint64_t> numbers) {
  std::string out;
  uint64_t number = 0;
  const uint64_t* next = numbers.begin();
  bool last_removed = false;
  for (size_t at = 0; at < text.size();) {
    size_t end = UnitEnd(text, unit, at);
    last_removed = next != numbers.end() && *next == number++;
    if (last_removed) {
      ++next;
    } else {
      out.append(text.data() + at, end - at);
    }
    at = end;
  }
  if (last_removed) out.erase(out.find_last_not_of('\n') + 1);
  return out;
}

}  // namespace llmctl::data
