#include "common/observe/metrics_server.h"

#include <thread>
#include <utility>

#include <httplib.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

#include "common/base/listen_address.h"

namespace llmctl {
namespace {

class HttplibMetricsServer final : public MetricsServer {
 public:
  explicit HttplibMetricsServer(Options options) : options_(std::move(options)) {}

  ~HttplibMetricsServer() override {
    server_.stop();
    if (thread_.joinable()) thread_.join();
  }

  absl::Status Listen() {
    absl::StatusOr<ListenAddress> listen =
        CheckListenAddress("--metrics-listen", options_.listen, options_.insecure_listen);
    if (!listen.ok()) return listen.status();
    int port = listen->port;
    std::string host(absl::StripSuffix(absl::StripPrefix(listen->host, "["), "]"));
    // Scrapes are short: two threads serve them all.
    server_.new_task_queue = [] { return new httplib::ThreadPool(2); };
    server_.set_keep_alive_timeout(1);
    // The library's default, SO_REUSEPORT, would let two programs share a port and half of the scrapes each.
    server_.set_socket_options([](socket_t socket) {
      int on = 1;
      setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    });
    server_.Get("/metrics", [this](const httplib::Request&, httplib::Response& response) {
      response.set_content(options_.metrics(), "text/plain; version=0.0.4");
    });
    server_.Get("/healthz", [this](const httplib::Request&, httplib::Response& response) {
      absl::Status health = options_.health();
      response.status = health.ok() ? 200 : 503;
      response.set_content(health.ok() ? "ok\n" : absl::StrCat(health.message(), "\n"), "text/plain");
    });
    if (port == 0) {
      port = server_.bind_to_any_port(host.c_str());
      if (port <= 0) port = -1;
    } else if (!server_.bind_to_port(host.c_str(), port)) {
      port = -1;
    }
    if (port < 0) {
      return absl::UnavailableError(absl::StrCat("cannot listen on ", options_.listen,
                                                 " for metrics: the address is in use or not of this host"));
    }
    address_ = absl::StrCat(listen->host, ":", port);
    thread_ = std::thread([this] { server_.listen_after_bind(); });
    // stop() has no effect before the loop runs.
    while (!server_.is_running()) std::this_thread::yield();
    return absl::OkStatus();
  }

  std::string address() const override { return address_; }

 private:
  const Options options_;
  std::string address_;
  httplib::Server server_;
  std::thread thread_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<MetricsServer>> MetricsServer::Start(Options options) {
  auto server = std::make_unique<HttplibMetricsServer>(std::move(options));
  absl::Status listening = server->Listen();
  if (!listening.ok()) return listening;
  return std::unique_ptr<MetricsServer>(std::move(server));
}

}  // namespace llmctl
