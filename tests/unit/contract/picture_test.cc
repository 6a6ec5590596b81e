#include "worker/contract/picture.h"

#include <string>

#include <gtest/gtest.h>

namespace llmctl::contract {
namespace {

Picture Sample() {
  Picture picture = {.reason = "it hangs", .nanoseconds = 42, .maps = "00400000-00401000 r-xp"};
  picture.threads.push_back({.tid = 7,
                             .name = "llm-trainer",
                             .state = "S",
                             .kernel = "futex_wait_queue",
                             .registers = {1, 2, 3},
                             .stack_address = 0x7fff0000,
                             .stack = std::string("\0bytes\0", 7)});
  picture.threads.push_back({.tid = 8, .state = "D", .note = "it did not stop"});
  return picture;
}

TEST(Picture, ComesBackAsItWent) {
  auto back = DecodePicture(EncodePicture(Sample()));

  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->reason, "it hangs");
  EXPECT_EQ(back->nanoseconds, 42);
  EXPECT_EQ(back->maps, Sample().maps);
  ASSERT_EQ(back->threads.size(), 2u);
  EXPECT_EQ(back->threads[0].stack, Sample().threads[0].stack);
  EXPECT_EQ(back->threads[0].registers, Sample().threads[0].registers);
  EXPECT_EQ(back->threads[0].kernel, "futex_wait_queue");
  EXPECT_EQ(back->threads[1].note, "it did not stop");
}

TEST(Picture, CutAnywhereItIsRefused) {
  std::string whole = EncodePicture(Sample());

  for (size_t size = 0; size < whole.size(); ++size) EXPECT_FALSE(DecodePicture(whole.substr(0, size)).ok()) << size;
}

TEST(Picture, ADamagedCountIsNotBelieved) {
  std::string bytes = EncodePicture(Sample());
  // The length of the reason, right behind the magic.
  for (size_t i = 8; i < 16; ++i) bytes[i] = '\xff';

  EXPECT_FALSE(DecodePicture(bytes).ok());
}

}  // namespace
}  // namespace llmctl::contract
