#include "worker/data/text/line_iterator.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace llmctl::data {
namespace {

std::vector<std::string> LinesOf(absl::string_view text) {
  std::vector<std::string> out;
  LineIterator lines(text);
  absl::string_view line;
  while (lines.Next(line)) out.emplace_back(line);
  return out;
}

TEST(LineIterator, EndsLinesAsPythonDoes) {
  using testing::ElementsAre;

  EXPECT_THAT(LinesOf(""), ElementsAre());
  EXPECT_THAT(LinesOf("a"), ElementsAre("a"));
  EXPECT_THAT(LinesOf("a\n"), ElementsAre("a"));
  EXPECT_THAT(LinesOf("\n\na\n\n"), ElementsAre("", "", "a", ""));
  EXPECT_THAT(LinesOf("a\r\nb\rc\n\rd"), ElementsAre("a", "b", "c", "", "d"));
  EXPECT_THAT(LinesOf("a\vb\fc\x1c"
                      "d\x1d"
                      "e\x1e"
                      "f\x1fg"),
              ElementsAre("a", "b", "c", "d", "e", "f\x1fg"));
  EXPECT_THAT(LinesOf("a\u0085b\u2028c\u2029d\u00a0e"), ElementsAre("a", "b", "c", "d\u00a0e"));
}

}  // namespace
}  // namespace llmctl::data
