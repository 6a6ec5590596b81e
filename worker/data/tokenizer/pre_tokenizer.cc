#include "worker/data/tokenizer/pre_tokenizer.h"

namespace llmctl::data {
namespace {

struct Spelling {
  absl::string_view regex;
  Pattern pattern;
};

// The first of each pattern is the one that is written. A spelling with "$" is not here: the peers' engines disagree on
// whether that is the end of the text or of a line.
constexpr Spelling kSpellings[] = {
    {R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)", Pattern::kGpt2},
    {R"('(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)", Pattern::kGpt2},
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     Pattern::kLlama3},
    {R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+)",
     Pattern::kLlama3},
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     Pattern::kQwen},
};

bool IsLineEnd(char c) { return c == '\n' || c == '\r'; }

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c; }

// The end of 's, 't, 'm, 'd, 're, 've or 'll at `at`, or `at`.
const char* ContractionEnd(const char* at, const char* end, bool any_case) {
  if (end - at < 2 || *at != '\'') return at;
  char first = any_case ? Lower(at[1]) : at[1];
  if (first == 's' || first == 't' || first == 'm' || first == 'd') return at + 2;
  if (end - at < 3) return at;
  // U+017F, the long s, is an s in another case.
  if (any_case && at[1] == '\xC5' && at[2] == '\xBF') return at + 3;
  char second = any_case ? Lower(at[2]) : at[2];
  bool found = (second == 'e' && (first == 'r' || first == 'v')) || (second == 'l' && first == 'l');
  return found ? at + 3 : at;
}

}  // namespace

absl::string_view PatternName(Pattern pattern) {
  switch (pattern) {
    case Pattern::kGpt2: return "gpt2";
    case Pattern::kLlama3: return "llama3";
    case Pattern::kQwen: return "qwen";
  }
  return "";
}

absl::optional<Pattern> PatternNamed(absl::string_view name) {
  for (Pattern pattern : {Pattern::kGpt2, Pattern::kLlama3, Pattern::kQwen}) {
    if (PatternName(pattern) == name) return pattern;
  }
  return absl::nullopt;
}

absl::string_view PatternRegex(Pattern pattern) {
  for (const Spelling& spelling : kSpellings) {
    if (spelling.pattern == pattern) return spelling.regex;
  }
  return "";
}

absl::optional<Pattern> PatternOfRegex(absl::string_view regex) {
  for (const Spelling& spelling : kSpellings) {
    if (spelling.regex == regex) return spelling.pattern;
  }
  return absl::nullopt;
}

const char* PreTokenizer::RunEnd(CharClass char_class, const char* at, const char* end) const {
  while (at < end) {
    CharClassTable::Char c = classes_.At(at, end);
    if (c.char_class != char_class) break;
    at += c.bytes;
  }
  return at;
}

// \s+(?!\S)|\s+ at white space: the run, but for its last character when something follows and that is not all.
const char* PreTokenizer::SpacesEnd(const char* at, const char* end) const {
  const char* last = at;
  const char* next = at;
  while (next < end) {
    CharClassTable::Char c = classes_.At(next, end);
    if (c.char_class != CharClass::kSpace) return last == at ? next : last;
    last = next;
    next += c.bytes;
  }
  return end;
}

// \s*[\r\n]+|\s+(?!\S)|\s+ at white space: through the run's last line end if it has one.
const char* PreTokenizer::SpacesEndAfterLines(const char* at, const char* end) const {
  const char* run_end = RunEnd(CharClass::kSpace, at, end);
  for (const char* last = run_end; last > at; --last) {
    if (IsLineEnd(last[-1])) return last;
  }
  return SpacesEnd(at, end);
}

const char* PreTokenizer::Gpt2PieceEnd(const char* at, const char* end) const {
  CharClassTable::Char first = classes_.At(at, end);
  if (first.char_class != CharClass::kSpace) {
    const char* contraction = ContractionEnd(at, end, /*any_case=*/false);
    if (contraction != at) return contraction;
    return RunEnd(first.char_class, at + first.bytes, end);
  }
  if (*at == ' ' && at + 1 < end) {
    CharClassTable::Char second = classes_.At(at + 1, end);
    if (second.char_class != CharClass::kSpace) return RunEnd(second.char_class, at + 1 + second.bytes, end);
  }
  return SpacesEnd(at, end);
}

const char* PreTokenizer::Llama3PieceEnd(const char* at, const char* end) const {
  CharClassTable::Char first = classes_.At(at, end);
  const char* next = at + first.bytes;
  if (first.char_class == CharClass::kLetter) return RunEnd(CharClass::kLetter, next, end);
  if (first.char_class == CharClass::kNumber) {
    for (int digits = pattern_ == Pattern::kLlama3 ? 1 : 3; digits < 3 && next < end; ++digits) {
      CharClassTable::Char c = classes_.At(next, end);
      if (c.char_class != CharClass::kNumber) break;
      next += c.bytes;
    }
    return next;
  }
  const char* contraction = ContractionEnd(at, end, /*any_case=*/true);
  if (contraction != at) return contraction;
  CharClassTable::Char second = next < end ? classes_.At(next, end) : CharClassTable::Char{CharClass::kSpace, 0};
  if (second.char_class == CharClass::kLetter && !IsLineEnd(*at)) {
    return RunEnd(CharClass::kLetter, next + second.bytes, end);
  }
  bool symbols = first.char_class == CharClass::kOther || (*at == ' ' && second.char_class == CharClass::kOther);
  if (!symbols) return SpacesEndAfterLines(at, end);
  next = RunEnd(CharClass::kOther, next, end);
  while (next < end && IsLineEnd(*next)) ++next;
  return next;
}

}  // namespace llmctl::data
