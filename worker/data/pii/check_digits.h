// Check digits of cards, accounts and identity numbers, and what their issuers give out.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"

namespace llmctl::data {

// ISO/IEC 7812: the sum over the digits, every second from the right doubled, is a multiple of ten.
bool IsLuhn(absl::string_view digits);

// A card number of a known issuer's range and length.
bool IsCardNumber(absl::string_view digits);

// How many characters the account numbers of a country have, by its two letters.
std::optional<size_t> IbanLength(absl::string_view country);
// What is left over of an IBAN without spaces, its first four characters moved to the end, A = 10: 1 for a right one.
int IbanRemainder(absl::string_view iban);

// GB 11643: 17 digits and a digit or X; place, date of birth (1850 to 2049) and ISO 7064 MOD 11-2.
bool IsChineseId(absl::string_view id);
// The eighteenth character for the first 17 digits.
char ChineseIdCheck(absl::string_view digits);

// Eleven digits with a prefix that is given out to mobile phones in China.
bool IsChineseMobile(absl::string_view digits);

// Nine digits that may be given out: https://www.ssa.gov/employer/randomization.html, and none of those that stood in
// advertisements.
bool IsUsSsn(absl::string_view digits);

}  // namespace llmctl::data
