#include "worker/data/prepare/json_line.h"

#include <string>

#include <gtest/gtest.h>

namespace llmctl::data {
namespace {

LineText Parse(absl::string_view line) {
  Repairs repairs;
  return JsonLineParser("text").Parse(line, repairs);
}

TEST(JsonLineParser, TakesTheTextOfTheField) {
  LineText line = Parse(R"( {"id": 1, "text": "a\n\"b\" \u00e9 \ud83d\ude42", "x": {"text": "no"}} )");

  ASSERT_TRUE(line.ok) << line.detail;
  EXPECT_EQ(line.text, "a\n\"b\" \xc3\xa9 \xf0\x9f\x99\x82");
}

TEST(JsonLineParser, GivesAReasonForEachKindOfBadLine) {
  auto reason = [](absl::string_view line) {
    LineText parsed = Parse(line);
    EXPECT_FALSE(parsed.ok) << line;
    return parsed.reason;
  };
  EXPECT_EQ(reason(R"({"text": "a")"), Reason::kInvalidJson);
  EXPECT_EQ(reason(R"({"text": "a)"), Reason::kInvalidJson);
  EXPECT_EQ(reason(R"({"text": "a",})"), Reason::kInvalidJson);
  EXPECT_EQ(reason(R"({"text": NaN})"), Reason::kInvalidJson);
  EXPECT_EQ(reason("{\"text\": \"a\tb\"}"), Reason::kInvalidJson);
  EXPECT_EQ(reason(absl::string_view("\0\0\0", 3)), Reason::kInvalidJson);
  EXPECT_EQ(reason("{\"text\": \"a\"}}"), Reason::kTrailingContent);
  EXPECT_EQ(reason(R"({"text": "a"} {"text": "b"})"), Reason::kTrailingContent);
  EXPECT_EQ(reason(R"({"text": "a"},)"), Reason::kTrailingContent);
  EXPECT_EQ(reason(R"(["text"])"), Reason::kNotAnObject);
  EXPECT_EQ(reason(R"("text")"), Reason::kNotAnObject);
  EXPECT_EQ(reason("17"), Reason::kNotAnObject);
  EXPECT_EQ(reason("null"), Reason::kNotAnObject);
  EXPECT_EQ(reason(R"({"Text": "a"})"), Reason::kFieldMissing);
  EXPECT_EQ(reason(R"({"text": "a", "text": "b"})"), Reason::kFieldRepeated);
  EXPECT_EQ(reason(R"({"text": null})"), Reason::kFieldNull);
  EXPECT_EQ(reason(R"({"text": 5})"), Reason::kFieldNotAString);
  EXPECT_EQ(reason(R"({"text": ["a"]})"), Reason::kFieldNotAString);
  EXPECT_EQ(reason(std::string(3000, '[')), Reason::kInvalidJson);
}

TEST(JsonLineParser, AnIntegerOfAnySizeBesideTheTextIsFine) {
  LineText line = Parse(R"({"id": 123456789012345678901234567890, "text": "a"})");

  EXPECT_TRUE(line.ok);
  EXPECT_EQ(line.text, "a");
  EXPECT_EQ(Parse(R"({"id": 123456789012345678901234567890, "text": 1})").reason, Reason::kFieldNotAString);
}

TEST(ReplaceLoneSurrogates, KeepsPairsAndEscapedBackslashes) {
  auto replaced = [](std::string line, int64_t count) {
    EXPECT_EQ(ReplaceLoneSurrogates(line), count) << line;
    return line;
  };
  EXPECT_EQ(replaced(R"(\ud83d\ude42)", 0), R"(\ud83d\ude42)");
  EXPECT_EQ(replaced(R"(a\ud83db)", 1), R"(a\uFFFDb)");
  EXPECT_EQ(replaced(R"(\uDE42\ud83d)", 2), R"(\uFFFD\uFFFD)");
  EXPECT_EQ(replaced(R"(\ud83d\ud83d\ude42)", 1), R"(\uFFFD\ud83d\ude42)");
  EXPECT_EQ(replaced(R"(\\ud83d)", 0), R"(\\ud83d)");
  EXPECT_EQ(replaced(R"(\\\ud83d)", 1), R"(\\\uFFFD)");
  EXPECT_EQ(replaced(R"(\ud83)", 0), R"(\ud83)");
  EXPECT_EQ(replaced(R"(\)", 0), R"(\)");
}

}  // namespace
}  // namespace llmctl::data
