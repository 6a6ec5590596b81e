#include "worker/data/text/word_splitter.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

#include "worker/data/text/rule_tables.h"
#include "worker/data/text/url_match.h"
#include "worker/data/text/utf8.h"

namespace llmctl::data {
namespace {

constexpr char32_t kEllipsis = 0x2026;
constexpr char32_t kEnDash = 0x2013;
constexpr char32_t kEmDash = 0x2014;
constexpr char32_t kDegree = 0xb0;
constexpr char32_t kRightQuote = 0x2019;
// The longest unit has five characters.
constexpr int kUnitCharactersMax = 5;

bool IsDigit(char32_t code) { return code >= '0' && code <= '9'; }

// The last code point of `text`, which is made shorter by it; 0 if there is none.
char32_t TakeLast(absl::string_view& text) {
  if (text.empty()) return 0;
  const char* end = text.data() + text.size();
  char32_t code = PreviousCodePoint(end);
  text = text.substr(0, end - text.data());
  return code;
}

char32_t LastOf(absl::string_view text) { return TakeLast(text); }

char32_t FirstOf(absl::string_view text) {
  if (text.empty()) return 0;
  const char* at = text.data();
  return NextCodePoint(at);
}

size_t CharacterBytes(char32_t code) { return code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4; }

size_t CountPeriods(absl::string_view text) {
  size_t count = text.find_first_not_of('.');
  return count == absl::string_view::npos ? text.size() : count;
}

void AppendPieces(absl::string_view text, const std::vector<int>& lengths, std::vector<absl::string_view>& words) {
  for (int length : lengths) {
    words.push_back(text.substr(0, length));
    text.remove_prefix(length);
  }
}

}  // namespace

WordSplitter::WordSplitter() : table_(CharacterTable::Get()) {
  for (absl::string_view unit : Units()) behind_digit_.insert(unit);
  for (absl::string_view currency : CurrencyWords()) behind_digit_.insert(currency);
  for (absl::string_view exception : WordExceptions()) {
    std::string text;
    std::vector<int> lengths;
    for (absl::string_view word : absl::StrSplit(exception, ' ')) {
      text.append(word.data(), word.size());
      lengths.push_back(word.size());
    }
    exception_bytes_max_ = std::max(exception_bytes_max_, text.size());
    exceptions_[text] = lengths;
  }
  // As spaCy does, a special case that its other rules would cut is looked for among the words afterwards, too.
  for (absl::string_view exception : WordExceptions()) {
    std::vector<std::string> to = absl::StrSplit(exception, ' ');
    std::string text = absl::StrJoin(to, "");
    if (PrefixLength(text) == 0 && SuffixLength(text) == 0 && !HasInfix(text)) continue;
    std::vector<absl::string_view> from;
    Split(text, Exceptions::kIgnore, from);
    joins_.push_back({{from.begin(), from.end()}, std::move(to)});
  }
}

const std::vector<int>* WordSplitter::FindException(absl::string_view text) const {
  if (text.size() > exception_bytes_max_) return nullptr;
  auto at = exceptions_.find(text);
  return at == exceptions_.end() ? nullptr : &at->second;
}

void WordSplitter::SplitChunk(absl::string_view chunk, std::vector<absl::string_view>& words) const {
  if (!IsPlain(chunk)) return Split(chunk, Exceptions::kUse, words);
  if (const std::vector<int>* exception = FindException(chunk)) {
    AppendPieces(chunk, *exception, words);
  } else if (!chunk.empty()) {
    words.push_back(chunk);
  }
}

bool WordSplitter::IsPlain(absl::string_view chunk) const {
  for (const char* at = chunk.data(); at < chunk.data() + chunk.size();) {
    if (table_.Is(NextCodePoint(at), kMaySplit)) return false;
  }
  return true;
}

void WordSplitter::Split(absl::string_view chunk, Exceptions exceptions,
                         std::vector<absl::string_view>& words) const {
  auto find = [&](absl::string_view text) {
    return exceptions == Exceptions::kUse ? FindException(text) : nullptr;
  };
  const std::vector<int>* exception = nullptr;
  absl::string_view rest = chunk;
  // Suffixes are found from the outside in; they lie behind `rest`, whose words come first.
  std::vector<size_t> suffixes;
  while (!rest.empty()) {
    if ((exception = find(rest)) != nullptr) break;
    size_t prefix = PrefixLength(rest);
    absl::string_view behind_prefix = rest.substr(prefix);
    if (prefix > 0 && (exception = find(behind_prefix)) != nullptr) {
      words.push_back(rest.substr(0, prefix));
      rest = behind_prefix;
      break;
    }
    size_t suffix = SuffixLength(behind_prefix);
    if (prefix == 0 && suffix == 0) break;
    absl::string_view before_suffix = rest.substr(0, rest.size() - suffix);
    if (suffix > 0) suffixes.push_back(suffix);
    if (suffix > 0 && (exception = find(before_suffix)) != nullptr) {
      rest = before_suffix;
      break;
    }
    if (prefix > 0) words.push_back(rest.substr(0, prefix));
    rest = behind_prefix.substr(0, behind_prefix.size() - suffix);
  }
  if (exception != nullptr) {
    AppendPieces(rest, *exception, words);
  } else if (LooksLikeUrl(rest)) {
    words.push_back(rest);
  } else if (!rest.empty()) {
    SplitInfixes(rest, words);
  }
  size_t at = rest.data() + rest.size() - chunk.data();
  for (auto suffix = suffixes.rbegin(); suffix != suffixes.rend(); ++suffix) {
    words.push_back(chunk.substr(at, *suffix));
    at += *suffix;
  }
}

size_t WordSplitter::PrefixLength(absl::string_view text) const {
  char32_t first = FirstOf(text);
  if (table_.Is(first, kPrefix)) return text.empty() ? 0 : CharacterBytes(first);
  if (first == '.') {
    size_t periods = CountPeriods(text);
    return periods >= 2 ? periods : 0;
  }
  if (first == '+') return text.size() > 1 && absl::ascii_isdigit(text[1]) ? 0 : 1;
  for (absl::string_view currency : CurrencyWords()) {
    if (absl::StartsWith(text, currency)) return currency.size();
  }
  return 0;
}

size_t WordSplitter::SuffixLength(absl::string_view text) const {
  if (text.empty()) return 0;
  absl::string_view before = text;
  char32_t last = TakeLast(before);
  size_t length = table_.Is(last, kSuffix) ? CharacterBytes(last) : 0;
  // The expression is searched from the left: of several endings the longest counts.
  if (last == '.') length = std::max(length, PeriodLength(text));
  if (last == kEllipsis && LastOf(before) == kEllipsis) length = 2 * CharacterBytes(kEllipsis);
  if (last == 's' || last == 'S') {
    char32_t mark = LastOf(before);
    if (mark == '\'' || mark == kRightQuote) length = CharacterBytes(mark) + 1;
  }
  if (IsDigit(LastOf(before)) && (last == '+' || table_.Is(last, kCurrency))) {
    length = std::max(length, CharacterBytes(last));
  }
  return std::max(length, BehindDigitLength(text));
}

// Of a text that ends in a period.
size_t WordSplitter::PeriodLength(absl::string_view text) const {
  size_t end = text.find_last_not_of('.');
  size_t periods = end == absl::string_view::npos ? text.size() : text.size() - end - 1;
  if (periods >= 2) return periods;
  absl::string_view before = text.substr(0, text.size() - 1);
  char32_t last = TakeLast(before);
  if (last == 0) return 0;
  if (table_.Is(last, kBeforePeriod)) return 1;
  if (before.empty()) return 0;
  char32_t second = LastOf(before);
  if (table_.Is(last, kSpacyUpper) && table_.Is(second, kSpacyUpper)) return 1;
  bool scale = last == 'F' || last == 'f' || last == 'C' || last == 'c' || last == 'K' || last == 'k';
  return scale && second == kDegree ? 1 : 0;
}

// Of a unit or currency behind the last digit.
size_t WordSplitter::BehindDigitLength(absl::string_view text) const {
  absl::string_view before = text;
  for (int i = 0; i <= kUnitCharactersMax && !before.empty(); ++i) {
    absl::string_view unit = text.substr(before.size());
    if (!IsDigit(TakeLast(before))) continue;
    return behind_digit_.contains(unit) ? unit.size() : 0;
  }
  return 0;
}

size_t WordSplitter::InfixLength(absl::string_view chunk, size_t at) const {
  absl::string_view from = chunk.substr(at);
  char32_t code = FirstOf(from);
  if (code == '.') {
    size_t periods = CountPeriods(from);
    if (periods >= 2) return periods;
  }
  if (code == kEllipsis || table_.Is(code, kIcon)) return CharacterBytes(code);
  bool dash = code == kEnDash || code == kEmDash;
  if (at == 0 || (code >= 0x80 && !dash)) return 0;
  char32_t before = LastOf(chunk.substr(0, at));
  absl::string_view rest = from.substr(CharacterBytes(code));
  if (rest.empty()) return 0;
  char32_t after = FirstOf(rest);
  switch (code) {
    case '.':
      return table_.Is(before, kSpacyLower | kQuote) && table_.Is(after, kSpacyUpper | kQuote) ? 1 : 0;
    case ',':
      return table_.Is(before, kSpacyAlpha) && table_.Is(after, kSpacyAlpha) ? 1 : 0;
    case '+':
    case '*':
    case '^':
      return IsDigit(before) && (IsDigit(after) || after == '-') ? 1 : 0;
    case ':':
    case '<':
    case '>':
    case '=':
    case '/':
      return (IsDigit(before) || table_.Is(before, kSpacyAlpha)) && table_.Is(after, kSpacyAlpha) ? 1 : 0;
    default:
      break;
  }
  if (code == '-' && IsDigit(before) && (IsDigit(after) || after == '-')) return 1;
  if (code != '-' && code != '~' && !dash) return 0;
  if (!IsDigit(before) && !table_.Is(before, kSpacyAlpha)) return 0;
  if (table_.Is(after, kSpacyAlpha)) return CharacterBytes(code);
  // "--", "---" and "——" before a letter.
  for (absl::string_view hyphens : {"--", "---", "——"}) {
    if (absl::StartsWith(from, hyphens) && table_.Is(FirstOf(from.substr(hyphens.size())), kSpacyAlpha)) {
      return hyphens.size();
    }
  }
  return 0;
}

bool WordSplitter::HasInfix(absl::string_view chunk) const {
  for (size_t at = 0; at < chunk.size(); ++at) {
    if (!IsContinuation(chunk[at]) && InfixLength(chunk, at) > 0) return true;
  }
  return false;
}

void WordSplitter::SplitInfixes(absl::string_view chunk, std::vector<absl::string_view>& words) const {
  size_t start = 0;
  size_t at = 0;
  while (at < chunk.size()) {
    // ASCII letters are no infix.
    size_t length = absl::ascii_isalnum(chunk[at]) || IsContinuation(chunk[at]) ? 0 : InfixLength(chunk, at);
    if (length == 0) {
      ++at;
      continue;
    }
    // spaCy leaves an infix at the very start alone.
    if (at > 0) {
      if (at > start) words.push_back(chunk.substr(start, at - start));
      words.push_back(chunk.substr(at, length));
      start = at + length;
    }
    at += length;
  }
  if (start < chunk.size()) words.push_back(chunk.substr(start));
}

}  // namespace llmctl::data
