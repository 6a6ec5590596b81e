#include "worker/trainer/sampling.h"

#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace llmctl::trainer {
namespace {

TEST(SampleToken, ZeroTemperatureTakesTheMostLikely) {
  EXPECT_EQ(SampleToken({0.1f, 2.0f, -1.0f}, {.temperature = 0}, 0.999), 1);
}

TEST(SampleToken, FollowsTheProbabilities) {
  // Probabilities 0.6, 0.3, 0.1 in order of likelihood.
  std::vector<float> logits = {std::log(0.1f), std::log(0.6f), std::log(0.3f)};

  EXPECT_EQ(SampleToken(logits, {}, 0.0), 1);
  EXPECT_EQ(SampleToken(logits, {}, 0.59), 1);
  EXPECT_EQ(SampleToken(logits, {}, 0.61), 2);
  EXPECT_EQ(SampleToken(logits, {}, 0.89), 2);
  EXPECT_EQ(SampleToken(logits, {}, 0.91), 0);
}

TEST(SampleToken, TopKExcludesTheRest) {
  std::vector<float> logits = {std::log(0.1f), std::log(0.6f), std::log(0.3f)};

  EXPECT_EQ(SampleToken(logits, {.top_k = 2}, 0.999999), 2);
  EXPECT_EQ(SampleToken(logits, {.top_k = 1}, 0.999999), 1);
}

TEST(SampleToken, AHighTemperatureEvensOut) {
  std::vector<float> logits = {0.0f, 5.0f};

  EXPECT_EQ(SampleToken(logits, {.temperature = 1}, 0.51), 1);
  EXPECT_EQ(SampleToken(logits, {.temperature = 1e6}, 0.51), 0);
}

TEST(Utf8Stream, HoldsBackTheBeginningOfACharacter) {
  Utf8Stream stream;

  EXPECT_EQ(stream.Push("a\xC3"), "a");
  EXPECT_EQ(stream.Push("\xA9"), "\xC3\xA9");
  EXPECT_EQ(stream.Push("\xF0\x9F\x98"), "");
  EXPECT_EQ(stream.Push("\x80!"), "\xF0\x9F\x98\x80!");
  EXPECT_EQ(stream.Finish(), "");
}

TEST(Utf8Stream, ReplacesWhatIsNoCharacter) {
  const std::string replacement = "\xEF\xBF\xBD";
  Utf8Stream stream;

  EXPECT_EQ(stream.Push("\x80x"), replacement + "x");
  EXPECT_EQ(stream.Push("\xC3(\xC0"), replacement + "(" + replacement);
  EXPECT_EQ(stream.Push("\xED\xA0\x80"), replacement + replacement + replacement);  // a surrogate
  EXPECT_EQ(stream.Push("\xE2\x82"), "");
  EXPECT_EQ(stream.Finish(), replacement);
}

}  // namespace
}  // namespace llmctl::trainer
