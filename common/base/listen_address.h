// Where a program may listen. Nothing it serves is authenticated or encrypted, so other addresses than those of this
// host are for operators who have said that they know.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace llmctl {

struct ListenAddress {
  std::string host;  // an IPv6 address in brackets
  int port = 0;      // 0: the system chooses
};

// InvalidArgument, naming `flag`: `text` is not host:port, or it is not of this host alone (127.0.0.0/8, [::1],
// localhost) though `insecure_listen` is false.
absl::StatusOr<ListenAddress> CheckListenAddress(absl::string_view flag, absl::string_view text, bool insecure_listen);

}  // namespace llmctl
