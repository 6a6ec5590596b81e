#include <gtest/gtest.h>
#include <httplib.h>

#include "common/observe/log.h"
#include "common/observe/metrics_server.h"

namespace llmctl {
namespace {

TEST(Log, LineHasTimeLevelEventAndQuotedFields) {
  std::string line = FormatLogLine(absl::FromUnixMillis(1700000000123), LogLevel::kWarning, "lease-expired",
                                   {{"node", "host-a"}, {"for", 10}, {"why", "no \"word\"\nfrom it"}});

  EXPECT_EQ(line,
            "2023-11-14T22:13:20.123Z WARNING lease-expired node=host-a for=10 why=\"no \\\"word\\\"\\nfrom it\"\n");
}

TEST(MetricsServer, ServesMetricsAndHealthOnAPortOfTheSystemsChoice) {
  absl::Status health;
  absl::StatusOr<std::unique_ptr<MetricsServer>> server = MetricsServer::Start(
      {.listen = "127.0.0.1:0", .metrics = [] { return std::string("up 1\n"); }, .health = [&] { return health; }});
  ASSERT_TRUE(server.ok()) << server.status();
  httplib::Client client("http://" + (*server)->address());

  EXPECT_EQ(client.Get("/metrics")->body, "up 1\n");
  EXPECT_EQ(client.Get("/healthz")->status, 200);
  health = absl::ResourceExhaustedError("disk is full");
  auto unhealthy = client.Get("/healthz");
  EXPECT_EQ(unhealthy->status, 503);
  EXPECT_EQ(unhealthy->body, "disk is full\n");
}

TEST(MetricsServer, TakenPortAndBadAddressAreReported) {
  MetricsServer::Options options{
      .listen = "127.0.0.1:0", .metrics = [] { return std::string(); }, .health = [] { return absl::OkStatus(); }};
  auto first = MetricsServer::Start(options);
  ASSERT_TRUE(first.ok());

  options.listen = (*first)->address();
  EXPECT_EQ(MetricsServer::Start(options).status().code(), absl::StatusCode::kUnavailable);
  options.listen = "0.0.0.0:0";
  EXPECT_EQ(MetricsServer::Start(options).status().code(), absl::StatusCode::kInvalidArgument);
  options.insecure_listen = true;
  EXPECT_TRUE(MetricsServer::Start(options).ok());
}

}  // namespace
}  // namespace llmctl
