#include "worker/data/pii/iban_rule.h"

#include <optional>
#include <string>

#include "worker/data/pii/check_digits.h"

namespace llmctl::data {
namespace {

bool IsIbanByte(char c) { return IsDigit(c) || (c >= 'A' && c <= 'Z'); }

// How many bytes of space or dash are at `at`.
size_t GapAt(absl::string_view text, size_t at) {
  if (at >= text.size()) return 0;
  if (text[at] == ' ' || text[at] == '-') return 1;
  return text.substr(at, 2) == "\xc2\xa0" ? 2 : 0;
}

}  // namespace

void FindIban(const TextScan& scan, size_t begin) {
  std::optional<size_t> length = IbanLength(scan.text.substr(begin, 2));
  if (!length.has_value() || scan.WordBefore(begin)) return;
  std::string iban;
  size_t at = begin;
  std::optional<size_t> gap;
  while (iban.size() < *length) {
    if (iban.size() % 4 == 0 && !iban.empty()) {
      // All gaps are alike.
      const size_t found = GapAt(scan.text, at);
      if (gap.value_or(found) != found) return;
      gap = found;
      at += found;
    }
    if (!IsIbanByte(scan.At(at))) return;
    iban += scan.text[at++];
  }
  scan.Count(at - begin);
  if (scan.WordAt(at) || IbanRemainder(iban) != 1) return;
  scan.Add(PiiType::kIban, begin, at);
}

}  // namespace llmctl::data
