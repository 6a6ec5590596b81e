#include "common/base/digest.h"

#include <gtest/gtest.h>

namespace llmctl {
namespace {

// FIPS 180-2, appendix B.1.
TEST(Sha256, KnownAnswer) {
  EXPECT_EQ(Sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(StreamingChecksum, PiecesGiveTheSameAsTheWhole) {
  std::string text(100000, 'x');
  text[777] = 'y';
  StreamingChecksum streaming;

  streaming.Add(text.data(), 500);
  streaming.Add(text.data() + 500, text.size() - 500);

  EXPECT_EQ(streaming.Hex(), Checksum128(text));
}

}  // namespace
}  // namespace llmctl
