#include "common/base/shown_command_line.h"

#include <array>
#include <cstring>
#include <string>

#include <gtest/gtest.h>

namespace llmctl {
namespace {

// Arguments as the kernel lays them out: one after the other, each with its zero byte.
struct Arguments {
  std::array<char, 16> memory = {'p', 'r', 'o', 'g', 0, 'w', 'a', 'i', 't', 0, '-', '-', 'x', 0, 'E', '='};
  std::array<char*, 4> argv = {&memory[0], &memory[5], &memory[10], nullptr};

  std::string shown() const { return std::string(memory.data(), 14); }
};

TEST(ShownCommandLine, AShorterOneIsShownWholeAndNothingIsLeftOfTheOther) {
  Arguments arguments;

  ShownCommandLine(3, arguments.argv.data()).Replace({"prog", "run"});

  EXPECT_EQ(arguments.shown(), std::string("prog\0run\0\0\0\0\0\0", 14));
}

TEST(ShownCommandLine, ALongerOneIsCutAndTheEnvironmentIsNotTouched) {
  Arguments arguments;

  ShownCommandLine(3, arguments.argv.data()).Replace({"prog", "a-long-argument"});

  EXPECT_EQ(arguments.shown(), std::string("prog\0a-long-a\0", 14));
  EXPECT_EQ(arguments.memory[14], 'E');
}

TEST(ShownCommandLine, ArgumentsThatWereMovedAreNoRoom) {
  Arguments arguments;
  std::string elsewhere = "wait";
  arguments.argv[1] = elsewhere.data();

  ShownCommandLine(3, arguments.argv.data()).Replace({"a", "b", "c"});

  EXPECT_EQ(arguments.shown(), std::string("a\0b\0\0wait\0--x\0", 14));
  EXPECT_EQ(elsewhere, "wait");
}

}  // namespace
}  // namespace llmctl
