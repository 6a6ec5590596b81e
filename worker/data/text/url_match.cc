#include "worker/data/text/url_match.h"

#include <array>

#include "absl/strings/ascii.h"

#include "worker/data/text/characters.h"
#include "worker/data/text/utf8.h"

namespace llmctl::data {
namespace {

constexpr int kLabelCharactersMax = 64;
constexpr int kTopLevelCharactersMax = 63;

bool IsHostCharacter(char32_t code) {
  if (code < 0x80) return absl::ascii_isalnum(static_cast<unsigned char>(code));
  return code >= 0xa1 && code <= 0xffff;
}

// Length of "scheme://" at the start of `text`, or 0.
size_t SchemeLength(absl::string_view text) {
  size_t colon = text.find(':');
  if (colon == absl::string_view::npos || text.substr(colon, 3) != "://") return 0;
  const CharacterTable& table = CharacterTable::Get();
  int characters = 0;
  for (const char* at = text.data(); at < text.data() + colon; ++characters) {
    char32_t code = NextCodePoint(at);
    if (code != '+' && code != '-' && code != '.' && !table.Is(code, kWordCharacter)) return 0;
  }
  return characters >= 2 ? colon + 3 : 0;
}

// The rest of an address behind its host: [:port][/path], to the end.
bool IsPortAndPath(absl::string_view text) {
  if (!text.empty() && text[0] == ':') {
    const CharacterTable& table = CharacterTable::Get();
    const char* at = text.data() + 1;
    const char* end = text.data() + text.size();
    int digits = 0;
    while (at < end) {
      const char* next = at;
      if (!table.Is(NextCodePoint(next), kDecimal)) break;
      at = next;
      ++digits;
    }
    if (digits < 2 || digits > 5) return false;
    text.remove_prefix(at - text.data());
  }
  return text.empty() || text[0] == '/' || text[0] == '?' || text[0] == '#';
}

// label.label.tld with what follows it.
bool IsDomain(absl::string_view text) {
  const CharacterTable& table = CharacterTable::Get();
  const char* at = text.data();
  const char* end = at + text.size();
  int labels = 0;
  int characters = 0;           // of the label that is being read
  bool label = true;            // it may be a label: if a period follows
  bool top_level = true;        // it may be the top-level domain: if the end of the host follows
  char32_t last = 0;
  for (; at < end; ++characters) {
    const char* next = at;
    char32_t code = NextCodePoint(next);
    if (code == ':' || code == '/' || code == '?' || code == '#') break;
    if (code == '.') {
      if (!label || characters == 0 || characters > kLabelCharactersMax || !IsHostCharacter(last)) return false;
      ++labels;
      characters = -1;
      label = top_level = true;
    } else {
      label = label && (IsHostCharacter(code) || (characters > 0 && (code == '_' || code == '-')));
      top_level = top_level && table.Is(code, kSpacyLower);
      if (!label && !top_level) return false;
    }
    last = code;
    at = next;
  }
  if (labels == 0 || !top_level || characters < 2 || characters > kTopLevelCharactersMax) return false;
  return IsPortAndPath(text.substr(at - text.data()));
}

// Reads a number of at most three digits without a leading zero, as the expression's first and last octets are;
// `leading_zeros` allows them.
bool ReadOctet(absl::string_view& text, bool leading_zeros, int& value) {
  size_t digits = 0;
  value = 0;
  while (digits < text.size() && digits < 3 && absl::ascii_isdigit(text[digits])) {
    value = value * 10 + (text[digits++] - '0');
  }
  if (digits == 0 || (!leading_zeros && text[0] == '0')) return false;
  // "0xx" matches no branch of the expression.
  if (digits == 3 && text[0] == '0') return false;
  text.remove_prefix(digits);
  return true;
}

bool IsPrivate(const std::array<int, 4>& octets) {
  return octets[0] == 10 || octets[0] == 127 || (octets[0] == 169 && octets[1] == 254) ||
         (octets[0] == 192 && octets[1] == 168) || (octets[0] == 172 && octets[1] >= 16 && octets[1] <= 31);
}

bool IsIpAddress(absl::string_view text) {
  std::array<int, 4> octets;
  for (int i = 0; i < 4; ++i) {
    if (i > 0) {
      if (text.empty() || text[0] != '.') return false;
      text.remove_prefix(1);
    }
    if (!ReadOctet(text, /*leading_zeros=*/i == 1 || i == 2, octets[i])) return false;
  }
  if (octets[0] > 223 || octets[1] > 255 || octets[2] > 255 || octets[3] > 254 || IsPrivate(octets)) return false;
  return IsPortAndPath(text);
}

bool IsHost(absl::string_view text) { return IsDomain(text) || IsIpAddress(text); }

}  // namespace

bool LooksLikeUrl(absl::string_view text) {
  // Whatever it is, a period is in it.
  if (text.find('.') == absl::string_view::npos) return false;
  if (IsHost(text)) return true;
  size_t scheme = SchemeLength(text);
  if (scheme > 0 && IsHost(text.substr(scheme))) return true;
  // Anything may stand before an '@'.
  for (size_t at = text.find('@', 1); at != absl::string_view::npos; at = text.find('@', at + 1)) {
    if (IsHost(text.substr(at + 1))) return true;
  }
  return false;
}

}  // namespace llmctl::data
