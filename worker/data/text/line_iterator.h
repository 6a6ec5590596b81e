// The lines of a text as Python's str.splitlines() gives them: ends are LF, CR, CR LF, VT, FF, U+001C..1E, U+0085,
// U+2028 and U+2029; what follows the last end is a line only if it is not empty.
#pragma once

#include "absl/strings/string_view.h"

#include "worker/data/text/characters.h"
#include "worker/data/text/utf8.h"

namespace llmctl::data {

class LineIterator {
 public:
  explicit LineIterator(absl::string_view text) : at_(text.data()), end_(text.data() + text.size()) {}

  // The next line without its end; false behind the last.
  bool Next(absl::string_view& line) {
    if (at_ == end_) return false;
    const char* start = at_;
    while (at_ < end_) {
      // Every line end begins like white space does.
      if (!table_.MayStartSpace(*at_)) {
        ++at_;
        continue;
      }
      const char* mark = at_;
      char32_t code = NextCodePoint(at_);
      if (!table_.Is(code, kLineEnd)) continue;
      line = absl::string_view(start, mark - start);
      if (code == '\r' && at_ < end_ && *at_ == '\n') ++at_;
      return true;
    }
    line = absl::string_view(start, at_ - start);
    return true;
  }

 private:
  const CharacterTable& table_ = CharacterTable::Get();
  const char* at_;
  const char* const end_;
};

}  // namespace llmctl::data
