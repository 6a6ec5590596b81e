#include "client/cluster/address.h"

#include <filesystem>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

#include "common/base/file.h"

namespace llmctl::client {
namespace {

constexpr char kLocalAddressFile[] = ".llmctl/coordinator.address";

bool IsHostAndPort(absl::string_view text) {
  size_t colon = text.rfind(':');
  int port = 0;
  return colon != absl::string_view::npos && colon > 0 && absl::SimpleAtoi(text.substr(colon + 1), &port) &&
         port > 0 && port < 65536;
}

}  // namespace

absl::StatusOr<std::string> CoordinatorAddress::Resolve() const {
  std::string text = value;
  if (!value.empty() && value[0] == '@') {
    absl::StatusOr<std::string> content = ReadFile(value.substr(1));
    if (!content.ok()) return absl::UnavailableError(content.status().message());
    text = std::string(absl::StripAsciiWhitespace(*content));
  }
  if (IsHostAndPort(text)) return text;
  return absl::InvalidArgumentError(absl::StrCat("coordinator address from ", origin, ": found \"", text,
                                                 "\", expected HOST:PORT or @FILE with HOST:PORT in it"));
}

CoordinatorAddress FindCoordinator(const std::string& flag, const std::string& environment) {
  if (!flag.empty()) return {flag, "--coordinator"};
  if (!environment.empty()) return {environment, "LLMCTL_COORDINATOR"};
  std::error_code ignored;
  if (std::filesystem::exists(kLocalAddressFile, ignored)) {
    return {absl::StrCat("@", kLocalAddressFile), kLocalAddressFile};
  }
  return {"127.0.0.1:7600", "the default"};
}

}  // namespace llmctl::client
