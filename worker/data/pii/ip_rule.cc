#include "worker/data/pii/ip_rule.h"

#include <algorithm>
#include <string>

#include <arpa/inet.h>

namespace llmctl::data {
namespace {

struct Ipv4Block {
  uint32_t address;
  int bits;
};

constexpr uint32_t Quad(uint32_t a, uint32_t b, uint32_t c, uint32_t d) { return a << 24 | b << 16 | c << 8 | d; }

bool IsIn(uint32_t address, const Ipv4Block& block) { return (address ^ block.address) >> (32 - block.bits) == 0; }

constexpr Ipv4Block kReserved[] = {
    {Quad(0, 0, 0, 0), 8},       {Quad(10, 0, 0, 0), 8},      {Quad(100, 64, 0, 0), 10}, {Quad(127, 0, 0, 0), 8},
    {Quad(169, 254, 0, 0), 16},  {Quad(172, 16, 0, 0), 12},   {Quad(192, 0, 0, 0), 24},  {Quad(192, 0, 2, 0), 24},
    {Quad(192, 168, 0, 0), 16},  {Quad(198, 18, 0, 0), 15},   {Quad(198, 51, 100, 0), 24},
    {Quad(203, 0, 113, 0), 24},  {Quad(240, 0, 0, 0), 4},
};
constexpr Ipv4Block kMulticast = {Quad(224, 0, 0, 0), 4};
constexpr Ipv4Block kOldRelays = {Quad(192, 88, 99, 0), 24};

// Port Control Protocol Anycast and TURN Anycast, reachable in a block that is not.
bool IsAnycast(uint32_t address) { return address == Quad(192, 0, 0, 9) || address == Quad(192, 0, 0, 10); }

bool IsReserved(uint32_t address) {
  return !IsAnycast(address) &&
         std::any_of(std::begin(kReserved), std::end(kReserved), [&](const Ipv4Block& b) { return IsIn(address, b); });
}

struct Ipv6Block {
  std::array<uint8_t, 16> address;
  int bits;
};

bool IsIn(const std::array<uint8_t, 16>& address, const Ipv6Block& block) {
  for (int bit = 0; bit < block.bits; bit += 8) {
    const int kept = std::min(8, block.bits - bit);
    if (((address[bit / 8] ^ block.address[bit / 8]) >> (8 - kept)) != 0) return false;
  }
  return true;
}

constexpr Ipv6Block kGlobalUnicast = {{0x20}, 3};
constexpr Ipv6Block kIetf = {{0x20, 0x01, 0x00}, 23};
// Reachable parts of kIetf: anycasts, AMT, AS112, ORCHIDv2, drone remote identification.
constexpr Ipv6Block kReachable[] = {
    {{0x20, 0x01, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}, 128},
    {{0x20, 0x01, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2}, 128},
    {{0x20, 0x01, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3}, 128},
    {{0x20, 0x01, 0, 3}, 32},
    {{0x20, 0x01, 0, 4, 0x01, 0x12}, 48},
    {{0x20, 0x01, 0, 0x20}, 28},
    {{0x20, 0x01, 0, 0x30}, 28},
};
constexpr Ipv6Block kDocumentation[] = {{{0x20, 0x01, 0x0d, 0xb8}, 32}, {{0x3f, 0xff, 0x00}, 20}};

// Public name servers whose numbers are as small as a version's.
bool IsKnownServer(uint32_t address) {
  constexpr uint32_t kKnown[] = {Quad(1, 1, 1, 1), Quad(1, 0, 0, 1), Quad(8, 8, 8, 8), Quad(8, 8, 4, 4),
                                 Quad(9, 9, 9, 9)};
  return std::find(std::begin(kKnown), std::end(kKnown), address) != std::end(kKnown);
}

// Versions and numbers of sections look like addresses; most are of small numbers.
bool AreAllSmall(uint32_t address) {
  constexpr uint32_t kSmall = 24;
  return (address >> 24) < kSmall && (address >> 16 & 0xff) < kSmall && (address >> 8 & 0xff) < kSmall &&
         (address & 0xff) < kSmall;
}

bool IsDotted(char c) { return IsDigit(c) || c == '.'; }

}  // namespace

std::optional<uint32_t> ParseIpv4(absl::string_view text) {
  in_addr address;
  if (inet_pton(AF_INET, std::string(text).c_str(), &address) != 1) return std::nullopt;
  return ntohl(address.s_addr);
}

bool IsGlobalIpv4(uint32_t address) {
  return !IsReserved(address) && !IsIn(address, kMulticast) && !IsIn(address, kOldRelays);
}

bool IsGlobalIpv4ToPython(uint32_t address) {
  // 3.11 knows these parts of 192.0.0.0/24 only.
  if (IsIn(address, {Quad(192, 0, 0, 0), 24})) {
    return !IsIn(address, {Quad(192, 0, 0, 0), 29}) && !IsIn(address, {Quad(192, 0, 0, 170), 31});
  }
  return !IsReserved(address);
}

bool IsGlobalIpv6(const std::array<uint8_t, 16>& address) {
  auto contains = [&](const Ipv6Block& block) { return IsIn(address, block); };
  if (!contains(kGlobalUnicast)) return false;
  if (std::any_of(std::begin(kDocumentation), std::end(kDocumentation), contains)) return false;
  return !contains(kIetf) || std::any_of(std::begin(kReachable), std::end(kReachable), contains);
}

IpRule::IpRule()
    : quad_("(?:\\d{1,3}\\.){3}\\d{1,3}"),
      version_before_("(?i)(?:\\b(?:v|ver|version|versions|release|rel|sections?|sec|sect|chapter|table|figure|fig|"
                      "kernel|oid|rfc|firmware|driver|build|since|until|as of|upgraded? to|abschnitt|kapitel|sezione)|"
                      "se[c\\x{e7}][c\\x{e7}]?(?:[a\\x{e3}]o|i[o\\x{f3}]n)|\\x{a7}|\\x{7b2c})[.:=]?[\\s\\x{a0}]*$"),
      address_before_("(?i)(?:(?:\\bips?\\b|ipv4|addr|adres|server|dns|ping|route|gateway)[^.;!?\\n]{0,24}|"
                      "(?:\\b(?:hosts?|from|to|connect|client|peer|remote)|://|@)[\\s=:\\[(\"']{0,3})$") {}

// Parts of names: "linux-5.10.0.23", "Chrome/90.0.44.3", "1.2.3.4-1", "1.2.3.4+dfsg", and numbers of a list or a
// heading: "43.13.2.2. Title".
bool IpRule::IsPartOfName(const TextScan& scan, size_t begin, size_t end) const {
  if (scan.WordBefore(begin) || scan.WordAt(end)) return true;
  const char before = scan.Before(begin), after = scan.At(end);
  const char second = begin >= 2 ? scan.text[begin - 2] : '\0';
  if (before == '/' && IsWordByte(second)) return true;
  // Two addresses with a dash between are a range.
  if (before == '-' && IsWordByte(second) && !IsDigit(second)) return true;
  if (after == '-' && IsWordByte(scan.At(end + 1)) && !quad_.PrefixLength(scan.WindowFrom(end + 1, 16)).has_value()) {
    return true;
  }
  if (absl::string_view("+~#$,").find(before) != absl::string_view::npos && before != '\0') return true;
  if (absl::string_view("+~%*").find(after) != absl::string_view::npos && after != '\0') return true;
  const bool begins_line = begin == 0 || before == '\n' || (before == ' ' && (second == '\n' || second == '\0'));
  const char next = scan.At(end + 1);
  if (after == '.' && absl::ascii_islower(static_cast<unsigned char>(next))) return true;
  return begins_line && after == '.' && (next == ' ' || next == '\xc2');
}

void IpRule::FindIpv4(const TextScan& scan, size_t end) const {
  constexpr size_t kBytesMax = 15;
  size_t begin = end, stop = end;
  while (begin > 0 && end - begin <= kBytesMax && IsDotted(scan.text[begin - 1])) --begin;
  while (stop < scan.text.size() && stop - end <= kBytesMax && IsDotted(scan.text[stop])) ++stop;
  while (stop > begin && scan.text[stop - 1] == '.') --stop;
  scan.Count(stop - begin);
  const std::optional<uint32_t> address = ParseIpv4(scan.text.substr(begin, stop - begin));
  if (!address.has_value() || !IsGlobalIpv4(*address) || IsPartOfName(scan, begin, stop)) return;
  const absl::string_view context = scan.ContextBefore(begin, 48);
  if (version_before_.IsIn(context.substr(context.size() > 20 ? context.size() - 20 : 0))) return;
  const char after = scan.At(stop);
  const bool has_port_or_length = (after == ':' || after == '/') && IsDigit(scan.At(stop + 1));
  const bool is_doubtful = AreAllSmall(*address) && !IsKnownServer(*address) && !has_port_or_length;
  if (is_doubtful && !address_before_.IsIn(context)) return;
  scan.Add(PiiType::kIpv4, begin, stop);
}

void IpRule::FindIpv6(const TextScan& scan, size_t end) const {
  constexpr size_t kCandidateBytes = 6;
  constexpr size_t kBytesMax = 45;
  const size_t begin = end - kCandidateBytes;
  const char before = scan.Before(begin);
  if (scan.WordBefore(begin) || before == ':' || before == '.' || before == '-') return;
  size_t stop = begin;
  auto is_part = [](char c) { return absl::ascii_isxdigit(static_cast<unsigned char>(c)) || c == ':' || c == '.'; };
  while (stop < scan.text.size() && stop - begin <= kBytesMax && is_part(scan.text[stop])) ++stop;
  scan.Count(stop - begin);
  if (stop - begin > kBytesMax) return;
  while (scan.text[stop - 1] == '.') --stop;
  if (scan.text[stop - 1] == ':' && scan.text[stop - 2] != ':') --stop;
  // "2002::" is a block, "RFC 2822::" a reference.
  if (scan.WordAt(stop) || stop - begin == kCandidateBytes) return;
  std::array<uint8_t, 16> address;
  const std::string written(scan.text.substr(begin, stop - begin));
  if (inet_pton(AF_INET6, written.c_str(), address.data()) != 1 || !IsGlobalIpv6(address)) return;
  scan.Add(PiiType::kIpv6, begin, stop);
}

}  // namespace llmctl::data
