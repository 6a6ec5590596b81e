#include "common/base/listen_address.h"

#include <arpa/inet.h>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace llmctl {
namespace {

bool IsOfThisHostAlone(const std::string& host) {
  if (host == "localhost" || host == "[::1]") return true;
  in_addr address;
  return inet_pton(AF_INET, host.c_str(), &address) == 1 && ntohl(address.s_addr) >> 24 == 127;
}

}  // namespace

absl::StatusOr<ListenAddress> CheckListenAddress(absl::string_view flag, absl::string_view text, bool insecure_listen) {
  ListenAddress address;
  size_t colon = text.rfind(':');
  if (colon == absl::string_view::npos || colon == 0 || !absl::SimpleAtoi(text.substr(colon + 1), &address.port) ||
      address.port < 0 || address.port > 65535) {
    return absl::InvalidArgumentError(
        absl::StrCat(flag, "=", text, ": expected host:port with a port of 0 to 65535"));
  }
  address.host = std::string(text.substr(0, colon));
  if (!insecure_listen && !IsOfThisHostAlone(address.host)) {
    return absl::InvalidArgumentError(absl::StrCat(
        flag, "=", text, ": calls are neither authenticated nor encrypted, so only loopback addresses are served; add "
        "--insecure-listen where everybody who can reach this address may do anything"));
  }
  return address;
}

}  // namespace llmctl
