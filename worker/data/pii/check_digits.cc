#include "worker/data/pii/check_digits.h"

#include <algorithm>
#include <array>

#include "absl/strings/ascii.h"

namespace llmctl::data {
namespace {

// The first digits of an issuer's cards, between `low` and `high` of so many digits, and lengths. From
// https://en.wikipedia.org/wiki/Payment_card_number (2024) without issuers that are gone.
struct IssuerRange {
  uint32_t low;
  uint32_t high;
  int digits;
  size_t length_min;
  size_t length_max;
};
constexpr IssuerRange kIssuers[] = {
    {4, 4, 1, 16, 16},              // Visa
    {4, 4, 1, 13, 13},              // Visa before 1999
    {4, 4, 1, 19, 19},              // Visa
    {51, 55, 2, 16, 16},            // Mastercard
    {2221, 2720, 4, 16, 16},        // Mastercard
    {34, 34, 2, 15, 15},            // American Express
    {37, 37, 2, 15, 15},            // American Express
    {6011, 6011, 4, 16, 19},        // Discover
    {644, 659, 3, 16, 19},          // Discover
    {622126, 622925, 6, 16, 19},    // Discover and UnionPay
    {300, 305, 3, 14, 19},          // Diners Club
    {3095, 3095, 4, 14, 19},        // Diners Club
    {36, 36, 2, 14, 19},            // Diners Club
    {38, 39, 2, 14, 19},            // Diners Club
    {3528, 3589, 4, 16, 19},        // JCB
    {2131, 2131, 4, 15, 15},        // JCB before 2006
    {1800, 1800, 4, 15, 15},        // JCB before 2006
    {62, 62, 2, 16, 19},            // UnionPay
    {81, 81, 2, 16, 19},            // UnionPay
    {2200, 2204, 4, 16, 19},        // Mir
    {5018, 5018, 4, 12, 19},        // Maestro
    {5020, 5020, 4, 12, 19},        // Maestro
    {5038, 5038, 4, 12, 19},        // Maestro
    {56, 58, 2, 12, 19},            // Maestro
    {6304, 6304, 4, 12, 19},        // Maestro
    {6390, 6390, 4, 12, 19},        // Maestro
    {6759, 6763, 4, 12, 19},        // Maestro
};

// SWIFT's IBAN registry, release 96: country and length.
struct IbanCountry {
  absl::string_view country;
  size_t length;
};
constexpr IbanCountry kIbanCountries[] = {
    {"AD", 24}, {"AE", 23}, {"AL", 28}, {"AT", 20}, {"AZ", 28}, {"BA", 20}, {"BE", 16}, {"BG", 22}, {"BH", 22},
    {"BI", 27}, {"BR", 29}, {"BY", 28}, {"CH", 21}, {"CR", 22}, {"CY", 28}, {"CZ", 24}, {"DE", 22}, {"DJ", 27},
    {"DK", 18}, {"DO", 28}, {"EE", 20}, {"EG", 29}, {"ES", 24}, {"FI", 18}, {"FK", 18}, {"FO", 18}, {"FR", 27},
    {"GB", 22}, {"GE", 22}, {"GI", 23}, {"GL", 18}, {"GR", 27}, {"GT", 28}, {"HN", 28}, {"HR", 21}, {"HU", 28},
    {"IE", 22}, {"IL", 23}, {"IQ", 23}, {"IS", 26}, {"IT", 27}, {"JO", 30}, {"KW", 30}, {"KZ", 20}, {"LB", 28},
    {"LC", 32}, {"LI", 21}, {"LT", 20}, {"LU", 20}, {"LV", 21}, {"LY", 25}, {"MC", 27}, {"MD", 24}, {"ME", 22},
    {"MK", 19}, {"MN", 20}, {"MR", 27}, {"MT", 31}, {"MU", 30}, {"NI", 28}, {"NL", 18}, {"NO", 15}, {"OM", 23},
    {"PK", 24}, {"PL", 28}, {"PS", 29}, {"PT", 25}, {"QA", 29}, {"RO", 24}, {"RS", 22}, {"RU", 33}, {"SA", 24},
    {"SC", 31}, {"SD", 18}, {"SE", 24}, {"SI", 19}, {"SK", 24}, {"SM", 27}, {"SO", 23}, {"ST", 25}, {"SV", 28},
    {"TL", 23}, {"TN", 24}, {"TR", 26}, {"UA", 29}, {"VA", 22}, {"VG", 24}, {"XK", 20}, {"YE", 30},
};

// Places of GB/T 2260, by their first two digits.
constexpr int kProvinces[] = {11, 12, 13, 14, 15, 21, 22, 23, 31, 32, 33, 34, 35, 36, 37, 41, 42, 43,
                              44, 45, 46, 50, 51, 52, 53, 54, 61, 62, 63, 64, 65, 71, 81, 82, 83, 91};

int Number(absl::string_view digits) {
  int value = 0;
  for (char digit : digits) value = value * 10 + (digit - '0');
  return value;
}

bool IsDate(int year, int month, int day) {
  constexpr int kDays[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  if (month < 1 || month > 12 || day < 1) return false;
  const bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
  return day <= kDays[month - 1] + (month == 2 && leap ? 1 : 0);
}

}  // namespace

bool IsLuhn(absl::string_view digits) {
  int sum = 0;
  bool twice = false;
  for (auto digit = digits.rbegin(); digit != digits.rend(); ++digit, twice = !twice) {
    int value = (*digit - '0') * (twice ? 2 : 1);
    sum += value > 9 ? value - 9 : value;
  }
  return sum % 10 == 0;
}

bool IsCardNumber(absl::string_view digits) {
  const bool issued = std::any_of(std::begin(kIssuers), std::end(kIssuers), [&](const IssuerRange& range) {
    if (digits.size() < range.length_min || digits.size() > range.length_max) return false;
    const uint32_t first = static_cast<uint32_t>(Number(digits.substr(0, range.digits)));
    return first >= range.low && first <= range.high;
  });
  return issued && IsLuhn(digits);
}

std::optional<size_t> IbanLength(absl::string_view country) {
  auto known = std::find_if(std::begin(kIbanCountries), std::end(kIbanCountries),
                            [&](const IbanCountry& entry) { return entry.country == country; });
  if (known == std::end(kIbanCountries)) return std::nullopt;
  return known->length;
}

int IbanRemainder(absl::string_view iban) {
  int remainder = 0;
  auto add = [&](absl::string_view part) {
    for (char c : part) {
      const bool is_digit = c >= '0' && c <= '9';
      remainder = (is_digit ? remainder * 10 + (c - '0') : remainder * 100 + (c - 'A' + 10)) % 97;
    }
  };
  add(iban.substr(4));
  add(iban.substr(0, 4));
  return remainder;
}

char ChineseIdCheck(absl::string_view digits) {
  constexpr int kWeights[] = {7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2};
  int sum = 0;
  for (size_t i = 0; i < std::size(kWeights); ++i) sum += kWeights[i] * (digits[i] - '0');
  return "10X98765432"[sum % 11];
}

bool IsChineseId(absl::string_view id) {
  if (id.size() != 18) return false;
  const int year = Number(id.substr(6, 4));
  if (year < 1850 || year > 2049 || !IsDate(year, Number(id.substr(10, 2)), Number(id.substr(12, 2)))) return false;
  const int province = Number(id.substr(0, 2));
  if (std::find(std::begin(kProvinces), std::end(kProvinces), province) == std::end(kProvinces)) return false;
  return absl::ascii_toupper(static_cast<unsigned char>(id[17])) == ChineseIdCheck(id);
}

bool IsChineseMobile(absl::string_view digits) {
  if (digits.size() != 11 || digits[0] != '1') return false;
  const char third = digits[2];
  switch (digits[1]) {
    case '3':
    case '8':
      return true;
    case '4':
      return third == '0' || third == '1' || third >= '4';
    case '5':
      return third != '4';
    case '6':
      return third == '2' || third >= '5';
    case '7':
      return third != '9';
    case '9':
      return third != '4';
    default:
      return false;
  }
}

bool IsUsSsn(absl::string_view digits) {
  if (digits.size() != 9 || digits[0] == '9') return false;
  const absl::string_view area = digits.substr(0, 3);
  if (area == "000" || area == "666" || digits.substr(3, 2) == "00" || digits.substr(5) == "0000") return false;
  return digits != "078051120" && digits != "219099999";
}

}  // namespace llmctl::data
