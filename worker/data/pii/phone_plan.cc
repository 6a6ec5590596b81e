#include "worker/data/pii/phone_plan.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace llmctl::data {
namespace {

struct CountryCode {
  int code;
  size_t digits_min;
  size_t digits_max;
};
// Where a plan has numbers of few lengths. Those that are not here: kOtherCodes, 7 to 12 digits.
constexpr CountryCode kCountryCodes[] = {
    {1, 10, 10},  {7, 10, 10},   {20, 8, 10},   {27, 9, 9},   {30, 10, 10}, {31, 9, 9},    {32, 8, 9},    {33, 9, 9},
    {34, 9, 9},   {36, 8, 9},    {39, 6, 11},   {40, 9, 9},   {41, 9, 9},   {43, 7, 13},   {44, 9, 10},   {45, 8, 8},
    {46, 7, 10},  {47, 8, 8},    {48, 9, 9},    {49, 7, 12},  {51, 8, 9},   {52, 10, 11},  {54, 10, 11},  {55, 10, 11},
    {56, 9, 9},   {57, 8, 10},   {60, 8, 10},   {61, 9, 9},   {62, 8, 12},  {63, 8, 10},   {64, 8, 10},   {65, 8, 8},
    {66, 8, 9},   {81, 9, 10},   {82, 8, 10},   {84, 9, 10},  {86, 9, 11},  {90, 10, 10},  {91, 10, 10},  {92, 9, 10},
    {98, 10, 10}, {351, 9, 9},   {352, 6, 11},  {353, 7, 9},  {354, 7, 9},  {358, 6, 11},  {359, 7, 9},   {370, 8, 8},
    {371, 8, 8},  {372, 7, 8},   {380, 9, 9},   {385, 8, 9},  {386, 8, 8},  {420, 9, 9},   {421, 9, 9},   {852, 8, 8},
    {886, 8, 9},  {966, 8, 9},   {971, 8, 9},   {972, 8, 9},
};
constexpr int kOtherCodes[] = {
    53, 58, 93, 94, 95, 211, 212, 213, 216, 218, 220, 221, 222, 223, 224, 225, 226, 227, 228, 229, 230, 231,
    232, 233, 234, 235, 236, 237, 238, 239, 240, 241, 242, 243, 244, 245, 246, 248, 249, 250, 251, 252, 253,
    254, 255, 256, 257, 258, 260, 261, 262, 263, 264, 265, 266, 267, 268, 269, 290, 291, 297, 298, 299, 350,
    355, 356, 357, 373, 374, 375, 376, 377, 378, 381, 382, 383, 387, 389, 423, 501, 502, 503, 504, 505, 506,
    507, 508, 509, 590, 591, 592, 593, 594, 595, 596, 597, 598, 599, 670, 672, 673, 674, 675, 676, 677, 678,
    679, 680, 681, 682, 683, 685, 686, 687, 688, 689, 690, 691, 692, 800, 850, 853, 855, 856, 870, 880, 960,
    961, 962, 963, 964, 965, 967, 968, 970, 973, 974, 975, 976, 977, 992, 993, 994, 995, 996, 998,
};

// Forms that are a number of a telephone by themselves. [2-9]\d{2} is an area of the North American plan.
constexpr absl::string_view kStrong[] = {
    // United States and Canada
    R"((?:1[ .-]?)?\([2-9]\d{2}\) ?[.-]?\d{3}[ .-]?\d{4})",
    R"((?:1-)?[2-9]\d{2}-\d{3}-\d{4})",
    R"((?:1\.)?[2-9]\d{2}\.\d{3}\.\d{4})",
    R"((?:1[ -])?[2-9]\d{2} \d{3}-\d{4})",
    R"((?:1[ -])?[2-9]\d{2}/\d{3}-\d{4})",
    R"(1 [2-9]\d{2} \d{3} \d{4})",
    // The number for a trunk, an area and a subscriber, the area apart: much of Europe, Asia and Australia.
    R"(\(0[1-9]\d{0,4}\)[ -]?[1-9]\d{1,8}(?:[ -]\d{2,5}){0,4})",
    R"(\(0[2378]\) \d{4}[ -]?\d{4})",  // Australia
    R"(0[1-9]\d{0,4}/ ?[1-9]\d{2,8}(?: \d{2,5}){0,3})",
    R"(0[1-9]\d{0,3} \d{3,8}(?: \d{2,5}){0,3})",
    R"(0[1-9]\d{4} \d{3,5})",
    R"(0[1-9]\d{0,2}-\d{2,8}(?:-\d{3,5}){0,2})",
    R"(0[1-9]\d{0,2}-\d{2,8}(?: \d{2,5}){1,3})",
    R"(0[1-9]\d{3}-(?:\d{5,8}|\d{3}-\d{3,4}))",  // not a zip code's five and four
    R"(0[1-9]\d{0,3}\(\d{1,4}\)\d{4})",  // Japan
    // France, Germany, the Netherlands, Spain: pairs
    R"(0[1-9](?: \d{2}){4})",
    R"(0 [1-9]\d{2}(?: \d{2}){3})",
    R"(0 8\d{2} \d{3} \d{3})",
    R"(0[1-9](?:\.\d{2}){4})",
    R"(0[1-9](?:-\d{2}){4})",
    R"(0\d{2,3}(?: \d{2}){3,4})",
    R"([6-9]\d{2}(?: \d{2}){3})",
    R"(9\d \d{3} \d{2} \d{2})",
    // Poland
    R"(\(?[1-9]\d\)? \d{3} \d{2} \d{2})",
    R"([1-9]\d[ -]\d{3}-\d{2}-\d{2})",
    R"(\([1-9]\d\) ?\d{3} ?\d{2} ?\d{2})",
    // Brazil
    R"(\(0?[1-9]\d\) ?9?[ .]?\d{4}[ .-]?\d{4})",
    R"(0?[1-9]\d 9?\d{4}-\d{4})",
    R"(0[3589]00[ -]?\d{3}[ -]?\d{4})",
    // China: services
    R"([48]00-\d{3,4}-\d{3,4})",
    // Australia: services
    R"(1[38]00 \d{3} \d{3})",
    // Russia
    R"(8[ -]?\(\d{3,5}\)[ -]?\d{1,3}[ -]?\d{2}[ -]?\d{2})",
    R"(8[ -]\d{3,5}[ -]\d{1,3}[ -]\d{2}[ -]\d{2})",
    R"(8-\d{3}-\d{3}-\d{4})",
    R"(\(\d{3,5}\) ?\d{1,3}-\d{2}-\d{2})",
    // Canada and others, in brackets throughout
    R"(\+?1 \([2-9]\d{2}\) \d{3}-\d{4})",
};

constexpr absl::string_view kWeak[] = {
    R"(1?[2-9]\d{2}[2-9]\d{6})",               // North America
    R"([2-9]\d{2} \d{3} \d{4})",
    R"([2-9]\d{2}[ .-]\d{7})",
    R"(0[1-9]\d{7,10})",                        // behind a trunk's 0
    R"([6-9]\d{2}[ .-]?\d{3}[ .-]?\d{3})",      // Spain
    R"(3\d{2}[ .-]?\d{3}[ .-]?\d{3,4})",        // Italy
    R"([1-8]\d{2}[ .-]\d{3}[ .-]\d{3})",        // Poland
    R"([1-8]\d{8})",
    R"([1-9]\d ?9?\d{4}[ -]?\d{4})",            // Brazil
    R"(9\d{4}[ -]\d{4})",
    R"((?:0 ?)?[6-9]\d{4}[ -]\d{5})",             // India
    R"([1-9]\d{1,3}[ -]\d{6,8})",
    R"(8 ?[3489]\d{2} ?\d{3}[ -]?\d{2}[ -]?\d{2})",  // Russia
    R"(13 \d{2} \d{2})",                        // Australia
    R"(1[38]00[ -]?\d{3}[ -]?\d{3})",
    R"(0\d{1,4}[ -]\d{2,4}[ -]\d{2,4}(?:[ -]\d{2,4})?)",
};

constexpr absl::string_view kAnnouncements[] = {
    R"(\b(?:tele?)?phones?\b)", R"(\btel\b)", R"(\btlf)", R"(\btelef)", R"(\bt[eé]l[eéè])", R"(\bfax)",
    R"(\bfon\b)", R"(\bfono)", R"(\bcall(?:s|ed|ing)?\b)", R"(\bdial)", R"(\bmobil)", R"(\bcell)", R"(\bhandy)",
    R"(\bwhats ?app)", R"(\bsms\b)", R"(\bgsm\b)", R"(\bhotline)", R"(\bhelpline)", R"(\bring\b)", R"(\btext me)",
    R"(\breach(?:ed)?\b)", R"(\bcontact)", R"(\bkontakt)", R"(\bcontato)", R"(\bcontat)", R"(\brufnummer)",
    R"(\banruf)", R"(\bruf(?:en|t)?\b)", R"(\bm[oó]vil)", R"(\bll[aá]m)", R"(\bappel)", R"(\bjoign)",
    R"(\bportable)", R"(\bcelular)", R"(\bligue)", R"(\bligar)", R"(\bchiam)", R"(\bbel(?:len)?\b)", R"(\bzadzwo)",
    R"(\bdzwo)", R"(\bkom[oó]r)", R"(\bkom\.)", R"(тел)", R"(факс)", R"(звон)", R"(моб)",
    R"(电话)", R"(電話)", R"(手机)", R"(手機)", R"(携帯)", R"(传真)",
    R"(फ़ोन|फोन|मोबाइल)", R"(☎|☏|✆|📞|📱)", R"(\b[TMFP]:)", R"(tel:)",
};

size_t CountDigits(absl::string_view form) {
  return std::count_if(form.begin(), form.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// "01 02 03 04 05": every group is one more than that before. Tables have such rows.
bool IsCounting(absl::string_view form) {
  int previous = -1, groups = 0;
  for (size_t at = 0; at < form.size();) {
    if (form[at] < '0' || form[at] > '9') {
      ++at;
      continue;
    }
    int value = 0;
    for (; at < form.size() && form[at] >= '0' && form[at] <= '9'; ++at) value = (value * 10 + form[at] - '0') % 100000;
    if (previous >= 0 && value != previous + 1) return false;
    previous = value;
    ++groups;
  }
  return groups >= 4;
}

template <size_t n>
std::string AnyOf(const absl::string_view (&patterns)[n]) {
  return absl::StrCat("(?:(?:", absl::StrJoin(patterns, ")|(?:"), "))");
}

}  // namespace

bool HasManyZeros(absl::string_view form) {
  int zeros = 0;
  for (char c : form) {
    if (c >= '0' && c <= '9') zeros = c == '0' ? zeros + 1 : 0;
    if (zeros == 6) return true;
  }
  return false;
}

bool IsInternationalNumber(absl::string_view digits) {
  if (digits.size() < 8 || digits.size() > 15 || digits[0] == '0' || HasManyZeros(digits)) return false;
  int code = 0;
  for (size_t length = 1; length <= 3; ++length) {
    code = code * 10 + (digits[length - 1] - '0');
    const size_t rest = digits.size() - length;
    for (const CountryCode& country : kCountryCodes) {
      if (country.code == code) return rest >= country.digits_min && rest <= country.digits_max;
    }
    if (std::find(std::begin(kOtherCodes), std::end(kOtherCodes), code) != std::end(kOtherCodes)) {
      return rest >= 7 && rest <= 12;
    }
  }
  return false;
}

PhonePlan::PhonePlan()
    : strong_(AnyOf(kStrong), Pattern::kLongest),
      weak_(AnyOf(kWeak), Pattern::kLongest),
      announced_(absl::StrCat("(?i)(?:", absl::StrJoin(kAnnouncements, "|"), ")")),
      disclaimed_("(?i)\\b(?:isbn(?:-1[03])?|issn|doi|oclc|lccn|serial|version|rfc|bugs?|bug#|issue|order|invoice|pid|"
                  "uid|part|page|pages|pp|line|lines|port|art|sku|ean|gtin|upc|cve)[-:.# ]*(?:no|nr|number)?[-:.# ]*$"),
      extension_("(?i)(?:\\s{0,2}(?:x|ext\\.?|extension|durchwahl|poste|доб\\.?)\\s{0,2}\\d{1,6}|"
                 "\\s{1,2}#\\d{1,5})\\b") {}

size_t PhonePlan::Length(const Pattern& pattern, absl::string_view form) {
  const size_t length = pattern.PrefixLength(form).value_or(0);
  if (length == 0) return 0;
  const absl::string_view number = form.substr(0, length);
  const size_t digits = CountDigits(number);
  // National numbers with a trunk's 0 have nine digits at least, whatever the grouping; a date has eight.
  const size_t digits_min = number[0] == '0' || number[0] == '(' ? 9 : 6;
  if (digits < digits_min || digits > 13 || IsCounting(number)) return 0;
  return HasManyZeros(number) ? 0 : length;
}

size_t PhonePlan::ExtensionLength(absl::string_view behind) const {
  return extension_.PrefixLength(behind).value_or(0);
}

}  // namespace llmctl::data
