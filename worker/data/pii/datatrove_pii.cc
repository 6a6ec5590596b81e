#include "worker/data/pii/datatrove_pii.h"

#include <optional>

#include "absl/strings/str_cat.h"

#include "worker/data/pii/ip_rule.h"
#include "worker/data/text/characters.h"

namespace llmctl::data {
namespace {

constexpr absl::string_view kOctet = "(?:25[0-5]|2[0-4][0-9]|[01]?[0-9][0-9]?)";

bool IsAtext(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
         (c != '\0' && absl::string_view("!#$%&'*+/=?^_`{|}~-").find(c) != absl::string_view::npos);
}

// Python's \b, which knows the letters of all scripts.
bool IsWordBorder(const TextScan& scan, size_t at) {
  auto is_word = [&](const char* position) {
    return CharacterTable::Get().Is(NextCodePoint(position), kWordCharacter);
  };
  const char* before = scan.text.data() + at;
  if (at > 0) PreviousCodePoint(before);
  const bool word_before = at > 0 && is_word(before);
  return word_before != is_word(scan.text.data() + at);
}

// The leftmost start from `lower` on of a local part that ends at `at`, or `at`.
size_t LocalBegin(const TextScan& scan, size_t lower, size_t at) {
  size_t begin = at;
  while (begin > lower && (IsAtext(scan.text[begin - 1]) || scan.text[begin - 1] == '.')) {
    if (scan.text[begin - 1] == '.' && (begin == at || scan.text[begin] == '.')) break;
    --begin;
  }
  scan.Count(at - begin);
  while (begin < at && (scan.text[begin] == '.' || !IsWordBorder(scan, begin))) ++begin;
  return begin;
}

}  // namespace

DatatrovePii::DatatrovePii()
    : domain_(absl::StrCat("((?:[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?\\.)+[A-Za-z0-9]"
                           "(?:[A-Za-z0-9-]*[A-Za-z0-9])?|\\[(?:",
                           kOctet, "\\.){3}(?:25[0-5]|2[0-4][0-9]|[01]?[0-9][0-9]?|[A-Za-z0-9-]*[A-Za-z0-9]:)\\])")),
      quad_(absl::StrCat("((?:", kOctet, "\\.){3}", kOctet, ")")) {}

void DatatrovePii::FindEmails(const TextScan& scan) const {
  size_t lower = 0;
  for (size_t at = scan.text.find('@'); at != absl::string_view::npos; at = scan.text.find('@', at + 1)) {
    const size_t begin = LocalBegin(scan, lower, at);
    const size_t domain = begin < at ? domain_.PrefixLength(scan.text.substr(at + 1)).value_or(0) : 0;
    if (domain > 0) {
      lower = at + 1 + domain;
      scan.Count(domain);
      scan.Add(PiiType::kEmail, begin, lower);
    } else if (at + 1 > lower) {
      lower = at + 1;
    }
  }
}

void DatatrovePii::FindIpv4(const TextScan& scan) const {
  scan.Count(scan.text.size());
  size_t at = 0;
  while (auto groups = quad_.Find<0>(scan.text.substr(at))) {
    const absl::string_view found = (*groups)[0];
    const size_t begin = found.data() - scan.text.data();
    at = begin + found.size();
    // Numbers with leading zeros are none, as in Python.
    std::optional<uint32_t> address = ParseIpv4(found);
    if (address.has_value() && IsGlobalIpv4ToPython(*address)) scan.Add(PiiType::kIpv4, begin, at);
  }
}

}  // namespace llmctl::data
