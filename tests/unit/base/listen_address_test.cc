#include "common/base/listen_address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace llmctl {
namespace {

using testing::HasSubstr;

TEST(ListenAddress, LoopbackNeedsNoConsent) {
  for (const char* text : {"127.0.0.1:0", "127.8.9.10:65535", "localhost:7600", "[::1]:7600"}) {
    EXPECT_TRUE(CheckListenAddress("--listen", text, false).ok()) << text;
  }
  EXPECT_EQ(CheckListenAddress("--listen", "[::1]:7600", false)->host, "[::1]");
  EXPECT_EQ(CheckListenAddress("--listen", "[::1]:7600", false)->port, 7600);
}

TEST(ListenAddress, EverythingElseDoes) {
  for (const char* text : {"0.0.0.0:1", "10.0.0.1:1", "127.example.org:1", "127.1:1", "[::]:1", "host:1"}) {
    absl::Status refused = CheckListenAddress("--metrics-listen", text, false).status();
    EXPECT_THAT(std::string(refused.message()), HasSubstr("--insecure-listen")) << text;
    EXPECT_THAT(std::string(refused.message()), HasSubstr("--metrics-listen=")) << text;
    EXPECT_TRUE(CheckListenAddress("--listen", text, true).ok()) << text;
  }
}

TEST(ListenAddress, WhatIsNoAddressIsRefusedWithAnyConsent) {
  for (const char* text : {"", "localhost", ":80", "localhost:", "localhost:x", "localhost:-1", "localhost:65536"}) {
    EXPECT_THAT(std::string(CheckListenAddress("--listen", text, true).status().message()), HasSubstr("host:port"))
        << text;
  }
}

}  // namespace
}  // namespace llmctl
