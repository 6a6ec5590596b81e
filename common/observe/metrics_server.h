// A small HTTP server for Prometheus: GET /metrics and GET /healthz, nothing else.
//
// What /metrics says comes from a callback, so this library knows no metrics registry. The callback runs on a
// server thread and must be thread-safe. Start() picks the port when it is 0; Stop() (or destruction) joins.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace llmctl {

class MetricsServer {
 public:
  struct Options {
    std::string listen;                           // "host:port" (common/base/listen_address.h)
    bool insecure_listen = false;                 // not of this host alone
    std::function<std::string()> metrics;         // in the Prometheus text format
    std::function<absl::Status()> health;         // OK: 200 "ok"; else 503 and the message
  };
  static absl::StatusOr<std::unique_ptr<MetricsServer>> Start(Options options);

  virtual ~MetricsServer() = default;

  // "host:port" as bound.
  virtual std::string address() const = 0;
};

}  // namespace llmctl
