#include "worker/data/pii/email_rule.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include <arpa/inet.h>

#include <unicode/uchar.h>
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "worker/data/pii/top_level_domains.h"

namespace llmctl::data {
namespace {

// RFC 5321 allows 64 octets of a local part and 255 of a domain. Letters of other scripts take several.
constexpr size_t kLocalBytesMax = 64;
constexpr size_t kLocalBytesRead = 160;
constexpr size_t kDomainBytesMax = 255;
constexpr size_t kLabelsMax = 16;
constexpr size_t kUserBytesMax = 256;
constexpr size_t kQuotedBytesMax = 64;

// Of RFC 5322's characters those that people have in addresses. The others ("!#$&*/=?^`{|}~") are mostly of the text
// around: "from=joe@example.org".
bool IsLocalPunctuation(char c) { return c == '.' || c == '_' || c == '%' || c == '+' || c == '-' || c == '\''; }

LetterClass ClassOf(char32_t code) {
  if (code >= 0x80) return LetterClassOf(code);
  return absl::ascii_isalnum(static_cast<unsigned char>(code)) ? LetterClass::kSpaced : LetterClass::kNone;
}

// Where the local part that ends at `at` begins, or `at`.
size_t LocalBegin(const TextScan& scan, size_t at) {
  const size_t lower = at > kLocalBytesRead ? at - kLocalBytesRead : 0;
  LetterClass kind = LetterClass::kNone;
  size_t begin = at;
  while (begin > lower) {
    const char* position = scan.text.data() + begin;
    char32_t code = PreviousCodePoint(position);
    LetterClass next = ClassOf(code);
    if (next == LetterClass::kNone) {
      if (code >= 0x80 || !IsLocalPunctuation(static_cast<char>(code))) break;
      if (code == '.' && (begin == at || scan.text[begin] == '.')) break;
    } else if (kind != LetterClass::kNone && next != kind && code >= 0x80) {
      break;
    } else if (next == LetterClass::kSpaced && kind == LetterClass::kUnspaced) {
      break;
    } else {
      kind = next;
    }
    begin = position - scan.text.data();
  }
  scan.Count(at - begin);
  while (begin < at && IsLocalPunctuation(scan.text[begin]) && scan.text[begin] != '_') ++begin;
  const bool ascii = std::all_of(scan.text.begin() + begin, scan.text.begin() + at,
                                 [](char c) { return static_cast<uint8_t>(c) < 0x80; });
  return at - begin > (ascii ? kLocalBytesMax : kLocalBytesRead - 4) ? at : begin;
}

// "John Doe"@example.org: where the quotation that ends at `at` begins, or `at`.
size_t QuotedLocalBegin(const TextScan& scan, size_t at) {
  absl::string_view before = scan.WindowBefore(at - 1, kQuotedBytesMax);
  size_t quote = before.find_last_of("\"\n<>");
  if (quote == absl::string_view::npos || before[quote] != '"' || quote + 1 == before.size()) return at;
  return at - 1 - (before.size() - quote);
}

// The label that begins at `begin`: where it ends.
size_t LabelEnd(const TextScan& scan, size_t begin) {
  LetterClass kind = LetterClass::kNone;
  size_t at = begin;
  while (at < scan.text.size() && at - begin <= kDomainBytesMax) {
    const char* position = scan.text.data() + at;
    char32_t code = NextCodePoint(position);
    LetterClass next = ClassOf(code);
    if (next == LetterClass::kNone ? code != '-' || at == begin : kind != LetterClass::kNone && next != kind) break;
    if (next != LetterClass::kNone) kind = next;
    at = position - scan.text.data();
  }
  while (at > begin && scan.text[at - 1] == '-') --at;
  return at;
}

bool BeginsSentence(const TextScan& scan, size_t at) {
  const char* position = scan.text.data() + at;
  char32_t code = NextCodePoint(position);
  return u_isupper(static_cast<UChar32>(code)) || LetterClassOf(code) == LetterClass::kUnspaced;
}

// Where the domain that begins at `begin` ends, or `begin`. It ends in a top-level domain; what follows it behind a dot
// is another sentence ("joe@example.org.Then").
size_t DomainEnd(const TextScan& scan, size_t begin) {
  std::vector<std::pair<size_t, size_t>> labels;
  size_t at = begin;
  while (labels.size() < kLabelsMax) {
    size_t end = LabelEnd(scan, at);
    if (end == at) break;
    labels.push_back({at, end});
    at = end;
    if (scan.At(at) != '.' || at - begin > kDomainBytesMax) break;
    ++at;
  }
  scan.Count(at - begin);
  for (size_t count = labels.size(); count >= 2; --count) {
    auto [label, end] = labels[count - 1];
    if (count < labels.size() && !BeginsSentence(scan, labels[count].first)) return begin;
    if (IsTopLevelDomain(scan.text.substr(label, end - label))) return end;
    // "joe@example.orgE<gt>": an escape of Perl's documentation.
    const bool has_escape = scan.text[end - 1] == 'E' && scan.At(end) == '<';
    if (has_escape && IsTopLevelDomain(scan.text.substr(label, end - 1 - label))) return end - 1;
  }
  return begin;
}

// joe@[192.0.2.1]
size_t AddressLiteralEnd(const TextScan& scan, size_t begin) {
  absl::string_view window = scan.WindowFrom(begin + 1, 48);
  size_t bracket = window.find(']');
  if (bracket == absl::string_view::npos) return begin;
  std::string literal(window.substr(0, bracket));
  unsigned char address[16];
  const bool is_ipv6 = absl::StartsWithIgnoreCase(literal, "ipv6:");
  const bool valid = is_ipv6 ? inet_pton(AF_INET6, literal.c_str() + 5, address) == 1
                             : inet_pton(AF_INET, literal.c_str(), address) == 1;
  return valid ? begin + 1 + bracket + 1 : begin;
}

// A place of a version control system, "git@host.org:project", or of ssh and cvs, "joe@host.org:/home".
bool IsRemotePlace(const TextScan& scan, absl::string_view local, size_t end) {
  if (scan.At(end) != ':') return false;
  return scan.At(end + 1) == '/' || scan.At(end + 1) == '~' || local == "git" || local == "hg" || local == "svn";
}

bool IsUserByte(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
         absl::string_view("-._~!$&'()*+,;=%").find(c) != absl::string_view::npos;
}

// What stands for a password to be filled in.
bool IsPlaceholder(absl::string_view password) {
  constexpr absl::string_view kPlaceholders[] = {"password", "passwd", "pass", "passwort", "pw", "pwd", "secret"};
  if (password[0] == '$' || password[0] == '%') return true;
  if (password.find_first_not_of("*.") == absl::string_view::npos) return true;
  const std::string small = absl::AsciiStrToLower(password);
  return std::find(std::begin(kPlaceholders), std::end(kPlaceholders), small) != std::end(kPlaceholders);
}

// Of those top-level domains that are no English word: "look at the dot in" is no address.
constexpr absl::string_view kSpelledDomains[] = {"com", "org", "net", "edu", "gov", "info", "io", "biz", "uk", "de",
                                                 "fr", "nl", "ca", "au", "jp", "cn", "ru", "eu", "ch", "br", "pl",
                                                 "es", "se"};

// "at a dot com firm"
bool IsPronoun(absl::string_view host) {
  constexpr absl::string_view kPronouns[] = {"a", "an", "the", "this", "that", "my", "our", "your", "his", "her", "any",
                                             "each", "every", "some", "one"};
  return std::find(std::begin(kPronouns), std::end(kPronouns), absl::AsciiStrToLower(host)) != std::end(kPronouns);
}

constexpr absl::string_view kAt = "(?:at|\xc3\xa4t|arobase|arroba|chiocciola|@)";
constexpr absl::string_view kSpelledDot =
    "(?:\\s?[(\\[{]\\s?(?:dot|punkt|point|punto|ponto)\\s?[)\\]}]\\s?|\\s(?:dot|punkt|punto|ponto)\\s)";

}  // namespace

bool IsTopLevelDomain(absl::string_view label) {
  const absl::string_view* end = kTopLevelDomains + kTopLevelDomainCount;
  if (label.size() < 2) return false;
  std::string small = absl::AsciiStrToLower(label);
  if (std::binary_search(kTopLevelDomains, end, absl::string_view(small))) return true;
  // RFC 2606's for examples: in texts they stand where an address would.
  return small == "example" || small == "test" || small == "invalid";
}

EmailRule::EmailRule()
    : name_before_bracket_(absl::StrCat("(?i)(?:^|[^a-z0-9._+-])([a-z0-9_](?:[a-z0-9_+-]|\\.|", kSpelledDot,
                                        ")*)\\s{0,2}[(\\[{]\\s?", kAt, "\\s?[)\\]}]$")),
      name_before_dot_("(?i)(?:^|[^a-z0-9._+-])([a-z0-9_](?:[a-z0-9_+-]|\\.|\\sdot\\s)*)\\sat\\s"
                       "([a-z0-9-]+(?:(?:\\.|\\sdot\\s)[a-z0-9-]+)*)\\sdot\\s$"),
      label_("(?i)([a-z0-9](?:[a-z0-9-]*[a-z0-9])?)"),
      dot_(absl::StrCat("(?i)(\\.|", kSpelledDot, ")")) {}

void EmailRule::FindAddress(const TextScan& scan, size_t at) const {
  const bool quoted = scan.Before(at) == '"';
  size_t begin = quoted && at > 0 ? QuotedLocalBegin(scan, at) : LocalBegin(scan, at);
  if (begin == at) return;
  const char before = scan.Before(begin);
  // The user of a URL, and a variable of a program.
  if (begin >= 3 && scan.text.substr(begin - 3, 3) == "://") return;
  if (before == '$' || before == '@' || (quoted && scan.WordBefore(begin))) return;
  size_t end = scan.At(at + 1) == '[' ? AddressLiteralEnd(scan, at + 1) : DomainEnd(scan, at + 1);
  if (end == at + 1) end = SpelledHostEnd(scan, at + 1);
  if (end == at + 1) return;
  if (scan.At(end) == '_' || scan.At(end) == '(') return;
  if (IsRemotePlace(scan, scan.text.substr(begin, at - begin), end)) return;
  scan.Add(PiiType::kEmail, begin, end);
}

size_t EmailRule::SpelledHostEnd(const TextScan& scan, size_t begin) const {
  const absl::string_view window = scan.WindowFrom(begin, 120);
  size_t end = 0;
  for (size_t at = 0, labels = 1;; ++labels) {
    const size_t label = label_.PrefixLength(window.substr(at)).value_or(0);
    if (label == 0) break;
    const bool is_domain = labels >= 2 && IsTopLevelDomain(window.substr(at, label));
    at += label;
    if (is_domain && !scan.WordAt(begin + at)) end = at;
    const size_t dot = dot_.PrefixLength(window.substr(at)).value_or(0);
    if (dot == 0) break;
    at += dot;
  }
  return begin + end;
}

void EmailRule::FindBracketed(const TextScan& scan, size_t end) const {
  auto groups = name_before_bracket_.Find<1>(scan.WindowBefore(end, 100));
  if (!groups.has_value()) return;
  const absl::string_view name = (*groups)[1];
  size_t host = end;
  while (host < end + 2 && absl::ascii_isspace(static_cast<unsigned char>(scan.At(host)))) ++host;
  size_t host_end = SpelledHostEnd(scan, host);
  if (host_end > host) scan.Add(PiiType::kEmail, name.data() - scan.text.data(), host_end);
}

void EmailRule::FindSpelled(const TextScan& scan, size_t end) const {
  auto groups = name_before_dot_.Find<2>(scan.WindowBefore(end, 160));
  if (!groups.has_value()) return;
  const absl::string_view name = (*groups)[1], host = (*groups)[2];
  size_t host_begin = host.data() - scan.text.data();
  size_t host_end = SpelledHostEnd(scan, host_begin);
  if (host_end <= end || IsPronoun(host)) return;
  absl::string_view domain = scan.text.substr(end, host_end - end);
  domain.remove_prefix(domain.find_last_of(". ") == absl::string_view::npos ? 0 : domain.find_last_of(". ") + 1);
  const std::string small = absl::AsciiStrToLower(domain);
  if (std::find(std::begin(kSpelledDomains), std::end(kSpelledDomains), small) == std::end(kSpelledDomains)) return;
  scan.Add(PiiType::kEmail, name.data() - scan.text.data(), host_end);
}

void FindUrlCredentials(const TextScan& scan, size_t at) {
  const size_t lower = at > kUserBytesMax ? at - kUserBytesMax : 0;
  size_t begin = at;
  std::optional<size_t> colon;
  while (begin > lower && (IsUserByte(scan.text[begin - 1]) || scan.text[begin - 1] == ':')) {
    --begin;
    if (scan.text[begin] == ':') colon = begin;
  }
  scan.Count(at - begin);
  // What stopped it is the '/' before the user.
  if (!colon.has_value() || *colon == begin || *colon + 1 == at || begin < 4) return;
  if (scan.text.substr(begin - 3, 3) != "://" || !IsWordByte(scan.text[begin - 4])) return;
  if (IsPlaceholder(scan.text.substr(*colon + 1, at - *colon - 1))) return;
  if (!scan.WordAt(at + 1) && scan.At(at + 1) != '[') return;
  scan.Add(PiiType::kUrlCredentials, begin, at);
}

}  // namespace llmctl::data
