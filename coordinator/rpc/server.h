// The gRPC server with all services, health checks and reflection.
//
// Until there is a way to know who calls, it listens on loopback only, unless told that the network is trusted.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"

#include "coordinator/runtime/runtime.h"

namespace llmctl::rpc {

class Server {
 public:
  struct Options {
    std::string listen;  // "host:port"; port 0 lets the system choose
    bool insecure_listen = false;
    std::string scratch_directory = "/tmp";  // for backups that are being made
  };
  // `runtime` outlives the server.
  static absl::StatusOr<std::unique_ptr<Server>> Start(const Options& options, runtime::Runtime& runtime);

  virtual ~Server() = default;

  // "host:port" as bound.
  virtual std::string address() const = 0;
  // Takes no new calls and ends those that go on. The runtime must have been stopped, or still answer.
  virtual void Stop() = 0;
};

}  // namespace llmctl::rpc
