// A text while it is looked through: what rules read and where they leave what they find.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/string_view.h"

#include "worker/data/pii/pii_cleaner.h"
#include "worker/data/text/utf8.h"

namespace llmctl::data {

struct TextScan {
  absl::string_view text;
  std::vector<PiiSpan>& spans;
  uint64_t& work;
  // How far numbers and private keys have been looked at: their candidates come once for each byte of a run.
  size_t numbers_done = 0;
  size_t private_keys_done = 0;

  // 0 before and behind the text.
  char At(size_t at) const { return at < text.size() ? text[at] : '\0'; }
  char Before(size_t at) const { return at > 0 ? text[at - 1] : '\0'; }

  // Whether a letter, digit or '_' ends before or begins at `at`. A letter of a script without spaces between words
  // does not count.
  bool WordBefore(size_t at) const;
  bool WordAt(size_t at) const;

  // text[at - bytes, at) and text[at, at + bytes), less what is cut off of a character or of the text.
  absl::string_view WindowBefore(size_t at, size_t bytes) const;
  absl::string_view WindowFrom(size_t at, size_t bytes) const;

  // What stands before and behind as far as it bears on what is between: what has been found, or its replacement, ends
  // it. So a text says the same when what is in it has been replaced.
  absl::string_view ContextBefore(size_t at, size_t bytes) const;
  absl::string_view ContextFrom(size_t at, size_t bytes) const;

  void Add(PiiType type, size_t begin, size_t end) const { spans.push_back({begin, end, type}); }
  // text[begin, end) will be read once.
  void Count(size_t bytes) const { work += bytes; }
};

inline bool IsWordByte(char c) { return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_'; }
inline bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// How a letter goes with its neighbours in a name: scripts that put no spaces between words (Han, kana, Thai ...), or
// none before particles (Hangul), are a class of their own, so that a name in Latin letters ends where they begin.
enum class LetterClass : uint8_t { kNone, kSpaced, kUnspaced };
LetterClass LetterClassOf(char32_t code);

}  // namespace llmctl::data
