#include "worker/data/pii/pseudonym.h"

#include <algorithm>
#include <cstdint>

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "common/base/check.h"
#include "worker/data/pii/check_digits.h"

namespace llmctl::data {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// What tells two apart, without how they are written.
std::string PlainForm(PiiType type, absl::string_view found) {
  if (type == PiiType::kEmail || type == PiiType::kIpv6) return absl::AsciiStrToLower(found);
  std::string out;
  switch (type) {
    case PiiType::kIban:
    case PiiType::kCard:
    case PiiType::kUsSsn:
    case PiiType::kChineseId:
    case PiiType::kChineseMobile:
    case PiiType::kPhone:
      std::copy_if(found.begin(), found.end(), std::back_inserter(out),
                   [](char c) { return absl::ascii_isalnum(static_cast<unsigned char>(c)); });
      return absl::AsciiStrToUpper(out);
    default:
      return std::string(found);
  }
}

// An endless row of numbers that only the key and the input decide.
class KeyedNumbers {
 public:
  KeyedNumbers(const PiiKey& key, PiiType type, absl::string_view plain)
      : key_(key), message_(absl::StrCat(PiiTypeName(type), ":", plain, ":")) {}

  // In [0, n). The remainder of 32 bits is even enough for n of at most 256.
  uint32_t Below(uint32_t n) {
    if (at_ + sizeof(uint32_t) > block_.size()) Refill();
    uint32_t value = 0;
    for (size_t i = 0; i < sizeof(uint32_t); ++i) value = value << 8 | static_cast<uint8_t>(block_[at_++]);
    return value % n;
  }
  char Digit() { return static_cast<char>('0' + Below(10)); }
  char Small() { return static_cast<char>('a' + Below(26)); }
  std::string Digits(size_t count) { return Many(count, &KeyedNumbers::Digit); }
  std::string Smalls(size_t count) { return Many(count, &KeyedNumbers::Small); }
  // A digit for a digit, a letter for a letter of its case; the rest stays.
  char Like(char c) {
    if (IsDigit(c)) return Digit();
    if (absl::ascii_islower(static_cast<unsigned char>(c))) return Small();
    if (absl::ascii_isupper(static_cast<unsigned char>(c))) return static_cast<char>(Small() - 'a' + 'A');
    return c;
  }

 private:
  std::string Many(size_t count, char (KeyedNumbers::*next)()) {
    std::string out(count, '\0');
    for (char& c : out) c = (this->*next)();
    return out;
  }

  void Refill() {
    const std::string message = absl::StrCat(message_, blocks_++);
    unsigned char out[EVP_MAX_MD_SIZE];
    unsigned size = 0;
    CHECK(HMAC(EVP_sha256(), key_.bytes().data(), static_cast<int>(key_.bytes().size()),
               reinterpret_cast<const unsigned char*>(message.data()), message.size(), out, &size) != nullptr)
        << "libcrypto has no SHA-256";
    block_.assign(reinterpret_cast<const char*>(out), size);
    at_ = 0;
  }

  const PiiKey& key_;
  const std::string message_;
  uint64_t blocks_ = 0;
  std::string block_;
  size_t at_ = 0;
};

// `found` with its digits, from the left, by those of `digits`.
std::string WithDigits(absl::string_view found, absl::string_view digits) {
  std::string out(found);
  size_t next = 0;
  for (char& c : out) {
    if (IsDigit(c) && next < digits.size()) c = digits[next++];
  }
  return out;
}

// The first `kept` letters and digits stay, each other is changed for one like it.
std::string ChangedBehind(absl::string_view found, size_t kept, KeyedNumbers& numbers) {
  std::string out(found);
  size_t seen = 0;
  for (char& c : out) {
    if (!absl::ascii_isalnum(static_cast<unsigned char>(c))) continue;
    if (seen++ >= kept) c = numbers.Like(c);
  }
  return out;
}

std::string Email(KeyedNumbers& numbers) {
  constexpr absl::string_view kHosts[] = {"example.com", "example.net", "example.org"};  // RFC 2606
  std::string local = numbers.Smalls(6);
  return absl::StrCat(local, ".", numbers.Smalls(7), "@", kHosts[numbers.Below(3)]);
}

std::string Card(absl::string_view found, absl::string_view plain, KeyedNumbers& numbers) {
  // The first six digits are the issuer's.
  std::string digits = absl::StrCat(plain.substr(0, 6), numbers.Digits(plain.size() - 7), "0");
  while (!IsLuhn(digits)) ++digits.back();
  return WithDigits(found, digits);
}

std::string Iban(absl::string_view found, KeyedNumbers& numbers) {
  std::string out(found), compact;
  size_t seen = 0;
  for (char& c : out) {
    if (!absl::ascii_isalnum(static_cast<unsigned char>(c))) continue;
    if (seen >= 4) c = numbers.Like(c);
    compact += seen == 2 || seen == 3 ? '0' : c;
    ++seen;
  }
  const std::string check = absl::StrFormat("%02d", 98 - IbanRemainder(compact));
  out[2] = check[0];
  out[3] = check[1];
  return out;
}

std::string ChineseId(absl::string_view plain, KeyedNumbers& numbers) {
  // The province stays; "0000" is no place in it.
  const uint32_t year = 1950 + numbers.Below(55), month = 1 + numbers.Below(12), day = 1 + numbers.Below(28);
  std::string id = absl::StrFormat("%s0000%04d%02d%02d", plain.substr(0, 2), year, month, day);
  id += numbers.Digits(3);
  return id + ChineseIdCheck(id);
}

std::string Phone(absl::string_view found, absl::string_view plain, KeyedNumbers& numbers) {
  // Country and area are at most half of it.
  const size_t digits = std::count_if(plain.begin(), plain.end(), IsDigit);
  const size_t kept = digits > 6 ? digits - 6 : 0;
  std::string out(found);
  size_t seen = 0;
  for (char& c : out) {
    if (IsDigit(c) && seen++ >= kept) c = numbers.Digit();
  }
  return out;
}

// What says of which kind a key is: up to its last mark near the start, or four characters.
size_t KindBytes(absl::string_view key) {
  const size_t mark = key.substr(0, 12).find_last_of("_-.:");
  return mark == absl::string_view::npos ? std::min<size_t>(4, key.size()) : mark + 1;
}

std::string ApiKey(absl::string_view found, KeyedNumbers& numbers) {
  std::string out(found);
  const size_t kept = KindBytes(found);
  for (size_t i = kept; i < out.size(); ++i) {
    // The second part of a JSON web token begins as the first does.
    if (absl::StartsWith(found.substr(i), ".eyJ")) {
      i += 3;
    } else {
      out[i] = numbers.Like(out[i]);
    }
  }
  return out;
}

std::string PrivateKey(absl::string_view found, KeyedNumbers& numbers) {
  const size_t begin = found.find("-----", 5);
  const size_t end = found.rfind("-----END");
  std::string out(found);
  for (size_t i = begin; i < std::min(end, out.size()); ++i) {
    // An escaped line end is no letter of the key.
    if (out[i] == '\\') {
      ++i;
    } else {
      out[i] = numbers.Like(out[i]);
    }
  }
  return out;
}

}  // namespace

std::string Pseudonym(const PiiKey& key, PiiType type, absl::string_view found) {
  const std::string plain = PlainForm(type, found);
  KeyedNumbers numbers(key, type, plain);
  switch (type) {
    case PiiType::kPrivateKey:
      return PrivateKey(found, numbers);
    case PiiType::kUrlCredentials: {
      std::string user = numbers.Smalls(8);
      return absl::StrCat(user, ":", numbers.Smalls(12));
    }
    case PiiType::kApiKey:
      return ApiKey(found, numbers);
    case PiiType::kEmail:
      return Email(numbers);
    case PiiType::kIban:
      return Iban(found, numbers);
    case PiiType::kChineseId:
      return plain.size() == 18 ? ChineseId(plain, numbers) : ChangedBehind(found, 6, numbers);
    case PiiType::kCard:
      return Card(found, plain, numbers);
    case PiiType::kUsSsn: {
      const uint32_t area = 900 + numbers.Below(100), group = 1 + numbers.Below(49), serial = 1 + numbers.Below(9999);
      return WithDigits(found, absl::StrFormat("%03d%02d%04d", area, group, serial));
    }
    case PiiType::kChineseMobile: {
      const size_t country = plain.size() - 11;
      return ChangedBehind(found, country + 3, numbers);
    }
    case PiiType::kIpv6: {
      std::string out = "2001:db8";
      for (int group = 0; group < 6; ++group) absl::StrAppendFormat(&out, ":%x", numbers.Below(0x10000));
      return out;
    }
    case PiiType::kIpv4: {
      // Arguments of a call have no order.
      std::string out = absl::StrCat(240 + numbers.Below(15));
      for (int octet = 0; octet < 3; ++octet) absl::StrAppend(&out, ".", numbers.Below(256));
      return out;
    }
    case PiiType::kPhone:
      return Phone(found, plain, numbers);
  }
  CHECK(false) << "no such type";
  return "";
}

}  // namespace llmctl::data
