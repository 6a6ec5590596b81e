#include "worker/contract/line_splitter.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace llmctl::contract {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> Drain(LineSplitter& lines) {
  std::vector<std::string> out;
  while (std::optional<std::string> line = lines.Next()) out.push_back(*line);
  return out;
}

TEST(LineSplitter, GivesTheSameLinesHoweverTheBytesArrive) {
  const std::string stream = "one\n\nthree is longer\nfour\n";
  for (size_t piece = 1; piece <= stream.size(); ++piece) {
    LineSplitter lines(100);
    std::vector<std::string> got;

    for (size_t at = 0; at < stream.size(); at += piece) {
      lines.Append(stream.substr(at, piece));
      for (std::string& line : Drain(lines)) got.push_back(line);
    }

    EXPECT_THAT(got, ElementsAre("one", "", "three is longer", "four")) << piece;
  }
}

TEST(LineSplitter, KeepsTheUnfinishedLineForLater) {
  LineSplitter lines(100);

  lines.Append("a\nb");

  EXPECT_THAT(Drain(lines), ElementsAre("a"));
  lines.Append("c\n");
  EXPECT_THAT(Drain(lines), ElementsAre("bc"));
}

TEST(LineSplitter, ALineOfTheMaximumPassesAndOneByteMoreDoesNot) {
  LineSplitter lines(4);

  lines.Append("1234\n12345");

  EXPECT_THAT(Drain(lines), ElementsAre("1234"));
  EXPECT_TRUE(lines.overflowed());
  lines.Append("\nafter\n");
  EXPECT_THAT(Drain(lines), IsEmpty());
}

}  // namespace
}  // namespace llmctl::contract
