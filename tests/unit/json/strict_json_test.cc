#include "common/json/strict_json.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace llmctl {
namespace {

using ::testing::HasSubstr;

std::string Refusal(absl::string_view text) {
  return std::string(ParseStrictJson(text, "file.json").status().message());
}

TEST(ParseStrictJson, SaysAtWhichByteTheTextBreaks) {
  EXPECT_THAT(Refusal("{\"a\": 1,}"), HasSubstr("file.json: not JSON at byte 9"));
  EXPECT_THAT(Refusal(""), HasSubstr("not JSON"));
  EXPECT_THAT(Refusal("{} {}"), HasSubstr("not JSON at byte 4"));
  EXPECT_THAT(Refusal("{\"a\": \"\xff\"}"), HasSubstr("not JSON"));
  EXPECT_THAT(Refusal("{\"a\": NaN}"), HasSubstr("not JSON"));
}

TEST(ParseStrictJson, RefusesAKeyThatOccursTwice) {
  EXPECT_THAT(Refusal("{\"a\": {\"b\": 1, \"b\": 2}}"), HasSubstr("\"b\" occurs twice"));
  EXPECT_TRUE(ParseStrictJson("{\"a\": {\"b\": 1}, \"c\": {\"b\": 2}}", "x").ok());
}

TEST(ParseStrictJson, RefusesDeepNesting) {
  EXPECT_TRUE(ParseStrictJson(std::string(kJsonDepthMax, '[') + std::string(kJsonDepthMax, ']'), "x").ok());
  EXPECT_THAT(Refusal(std::string(100000, '[')), HasSubstr("nested deeper"));
}

TEST(ObjectReader, ReadsEachTypeOfField) {
  nlohmann::json value = *ParseStrictJson(
      R"({"s": "x", "b": true, "n": 1.5, "i": -3, "u": 18446744073709551615, "l": [1, 2], "m": {"k": "v"},
          "o": {"p": 7}, "a": [{"q": 1}, {"q": 2}]})",
      "x");
  JsonErrors errors;
  ObjectReader root(value, "x", errors);

  EXPECT_EQ(root.String("s"), "x");
  EXPECT_TRUE(root.Bool("b"));
  EXPECT_EQ(root.Number("n"), 1.5);
  EXPECT_EQ(root.Integer("i", -5), -3);
  EXPECT_EQ(root.Unsigned("u"), ~uint64_t{0});
  EXPECT_THAT(root.Integers("l", 0), ::testing::ElementsAre(1, 2));
  EXPECT_EQ(root.Strings("m")["k"], "v");
  EXPECT_EQ(root.Object("o").Integer("p", 0), 7);
  EXPECT_EQ(root.Objects("a")[1].Integer("q", 0), 2);
  root.Finish();
  EXPECT_TRUE(errors.status().ok()) << errors.status();
}

// Reads `text` as {"o": {"count": integer from 1 to 9}} and returns the error.
std::string ErrorOf(absl::string_view text) {
  nlohmann::json value = *ParseStrictJson(text, "x");
  JsonErrors errors;
  ObjectReader root(value, "x", errors);
  ObjectReader inner = root.Object("o");
  inner.Integer("count", 1, 9);
  inner.Finish();
  root.Finish();
  return std::string(errors.status().message());
}

TEST(ObjectReader, NamesTheFieldAtFault) {
  EXPECT_EQ(ErrorOf(R"({"o": {"count": 5}})"), "");
  EXPECT_EQ(ErrorOf(R"({"o": {}})"), "x.o.count: is missing; expected an integer from 1 to 9");
  EXPECT_EQ(ErrorOf(R"({"o": {"count": "5"}})"), "x.o.count: expected an integer from 1 to 9, found string");
  EXPECT_EQ(ErrorOf(R"({"o": {"count": 0}})"), "x.o.count: expected an integer from 1 to 9, found 0");
  EXPECT_EQ(ErrorOf(R"({"o": {"count": 1.5}})"), "x.o.count: expected an integer from 1 to 9, found 1.5");
  EXPECT_EQ(ErrorOf(R"({"o": {"count": 18446744073709551615}})"),
            "x.o.count: expected an integer from 1 to 9, found 18446744073709551615");
  EXPECT_THAT(ErrorOf(R"({"o": {"count": 5, "extra": 1}})"), HasSubstr("x.o: unknown field \"extra\""));
  EXPECT_EQ(ErrorOf(R"({"o": [1]})"), "x.o: expected an object, found array");
  EXPECT_EQ(ErrorOf("[]"), "x: expected an object, found array");
}

}  // namespace
}  // namespace llmctl
