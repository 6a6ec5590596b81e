// IPv4 and IPv6 addresses that belong to somebody: those that the IANA special-purpose registries do not set aside.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "worker/data/pii/pattern.h"
#include "worker/data/pii/text_scan.h"

namespace llmctl::data {

// Four decimal numbers without leading zeros.
std::optional<uint32_t> ParseIpv4(absl::string_view text);

// https://www.iana.org/assignments/iana-ipv4-special-registry and -ipv6-special-registry (2024): an entry counts unless
// "Globally Reachable" is true for it. Multicast is not global here either; of IPv6 only 2000::/3 is in use.
bool IsGlobalIpv4(uint32_t address);
bool IsGlobalIpv6(const std::array<uint8_t, 16>& address);

// What Python's ipaddress says (is_global of 3.11): multicast is global, and so is all of 192.88.99.0/24.
bool IsGlobalIpv4ToPython(uint32_t address);

// Const after construction, safe from any thread.
class IpRule {
 public:
  IpRule();

  // The first digit of a fourth number ends at `end`.
  void FindIpv4(const TextScan& scan, size_t end) const;
  // "2001:d" ends at `end`.
  void FindIpv6(const TextScan& scan, size_t end) const;

 private:
  bool IsPartOfName(const TextScan& scan, size_t begin, size_t end) const;

  const Pattern quad_;
  const Pattern version_before_;
  const Pattern address_before_;
};

}  // namespace llmctl::data
