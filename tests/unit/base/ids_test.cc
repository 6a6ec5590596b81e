#include "common/base/ids.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace llmctl {
namespace {

TEST(Ids, OrderAsTheirStringsDo) {
  // All strings of up to four of these bytes, alone and behind beginnings that make them short and long ids.
  const std::string bytes("\0a\xff", 3);
  std::vector<std::string> tails = {""};
  for (size_t i = 0; tails[i].size() < 4; ++i) {
    for (char byte : bytes) tails.push_back(tails[i] + byte);
  }
  for (const std::string begin : {"", "j-1", "node-", "gpu-host", "gpu-host-"}) {
    for (const std::string& left : tails) {
      for (const std::string& right : tails) {
        const std::string a = begin + left, b = begin + right;

        ASSERT_EQ(NodeId(a) <=> NodeId(b), a <=> b) << a << " and " << b;
        ASSERT_EQ(NodeId(a) == NodeId(b), a == b) << a << " and " << b;
      }
    }
  }
}

}  // namespace
}  // namespace llmctl
