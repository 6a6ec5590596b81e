#include "worker/agent/host/host_facts.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <memory>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

#include "common/base/file.h"
#include "common/base/status.h"
#include "common/base/unique_fd.h"

namespace llmctl::agent {
namespace {

struct HostAndPort {
  std::string host, port;
};

// "[::1]:7600" has its brackets taken off.
absl::StatusOr<HostAndPort> Split(absl::string_view address) {
  size_t colon = address.rfind(':');
  if (colon == absl::string_view::npos || colon == 0 || colon + 1 == address.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("coordinator address \"", address, "\": expected host:port, or @FILE"));
  }
  absl::string_view host = address.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  return HostAndPort{std::string(host), std::string(address.substr(colon + 1))};
}

// The source address that the kernel chooses towards `to`.
absl::StatusOr<std::string> SourceAddress(const addrinfo& to) {
  UniqueFd socket(::socket(to.ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket.valid()) return ErrnoStatus(errno, "create a socket");
  if (::connect(socket.get(), to.ai_addr, to.ai_addrlen) != 0) return ErrnoStatus(errno, "find a route");
  sockaddr_storage own = {};
  socklen_t size = sizeof own;
  if (::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&own), &size) != 0) {
    return ErrnoStatus(errno, "read the socket's address");
  }
  char text[NI_MAXHOST];
  int failed = ::getnameinfo(reinterpret_cast<sockaddr*>(&own), size, text, sizeof text, nullptr, 0, NI_NUMERICHOST);
  if (failed != 0) return absl::InternalError(::gai_strerror(failed));
  return std::string(text);
}

}  // namespace

absl::StatusOr<std::string> ReadBootId() {
  LLM_ASSIGN_OR_RETURN(std::string id, ReadFile("/proc/sys/kernel/random/boot_id"));
  return std::string(absl::StripAsciiWhitespace(id));
}

absl::StatusOr<std::string> ReadHostName() {
  char name[256] = "";
  if (::gethostname(name, sizeof name - 1) != 0) return ErrnoStatus(errno, "read the host's name");
  return std::string(name);
}

absl::StatusOr<std::string> CoordinatorAddress(const std::string& flag) {
  std::string address = flag;
  if (!flag.empty() && flag[0] == '@') {
    absl::StatusOr<std::string> content = ReadFile(flag.substr(1));
    if (!content.ok()) return Annotate(content.status(), "--coordinator=", flag);
    address = std::string(absl::StripAsciiWhitespace(*content));
  }
  absl::StatusOr<HostAndPort> parts = Split(address);
  if (!parts.ok()) return parts.status();
  return address;
}

absl::StatusOr<std::string> FabricAddress(absl::string_view coordinator_address) {
  LLM_ASSIGN_OR_RETURN(HostAndPort parts, Split(coordinator_address));
  addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_DGRAM};
  addrinfo* found = nullptr;
  int failed = ::getaddrinfo(parts.host.c_str(), parts.port.c_str(), &hints, &found);
  if (failed != 0) {
    return absl::UnavailableError(absl::StrCat("look up coordinator ", parts.host, ": ", ::gai_strerror(failed)));
  }
  std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, &::freeaddrinfo);
  absl::StatusOr<std::string> address = SourceAddress(*found);
  if (!address.ok()) return Annotate(address.status(), "route to coordinator ", coordinator_address);
  return address;
}

}  // namespace llmctl::agent
