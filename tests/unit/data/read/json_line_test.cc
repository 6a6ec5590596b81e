#include "worker/data/read/json_line.h"

#include <string>

#include <gtest/gtest.h>

namespace llmctl::data {
namespace {

// A parser and the line that it gave last.
class Parsed {
 public:
  explicit Parsed(absl::string_view line, const ReadSettings& settings = {}) : parser_(settings), padded_(line) {
    padded_.reserve(line.size() + JsonLineParser::kPadding);
    line_ = parser_.Parse(padded_, repairs_);
  }
  const LineText* operator->() const { return &line_; }
  const Repairs& repairs() const { return repairs_; }

 private:
  JsonLineParser parser_;
  std::string padded_;
  Repairs repairs_;
  LineText line_;
};

TEST(JsonLineParser, TakesTheTextOfTheField) {
  Parsed line(R"( {"id": 1, "text": "a\n\"b\" \u00e9 \ud83d\ude42", "x": {"text": "no"}} )");

  ASSERT_TRUE(line->ok) << line->detail;
  EXPECT_EQ(line->text, "a\n\"b\" \xc3\xa9 \xf0\x9f\x99\x82");
}

TEST(JsonLineParser, GivesAReasonForEachKindOfBadLine) {
  auto reason = [](absl::string_view line) {
    Parsed parsed(line);
    EXPECT_FALSE(parsed->ok) << line;
    return parsed->reason;
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
  Parsed line(R"({"id": 123456789012345678901234567890, "text": "a"})");

  EXPECT_TRUE(line->ok);
  EXPECT_EQ(line->text, "a");
  EXPECT_EQ(Parsed(R"({"id": 123456789012345678901234567890, "text": 1})")->reason, Reason::kFieldNotAString);
}

TEST(JsonLineParser, FindsFieldsByPath) {
  ReadSettings settings{.text_field = "doc.body.text", .id_field = "doc.id"};
  Parsed line(R"({"text": "no", "doc": {"body": {"x": 1, "text": "yes"}, "id": "i7"}})", settings);

  ASSERT_TRUE(line->ok);
  EXPECT_EQ(line->text, "yes");
  EXPECT_EQ(line->id, "i7");
  EXPECT_EQ(Parsed(R"({"doc": {"body": "x"}})", settings)->reason, Reason::kFieldMissing);
  EXPECT_EQ(Parsed(R"({"doc": {"body": {}}})", settings)->reason, Reason::kFieldMissing);
  EXPECT_EQ(Parsed(R"({"doc": null})", settings)->reason, Reason::kFieldMissing);
  EXPECT_EQ(Parsed(R"({"doc": {"body": {"text": null}}})", settings)->reason, Reason::kFieldNull);
  EXPECT_EQ(Parsed(R"({"doc": {}, "doc": {"body": {"text": "x"}}})", settings)->reason, Reason::kFieldRepeated);
  EXPECT_EQ(Parsed(R"({"doc": {"body": {"text": "x"}}, "n": 99999999999999999999999})", settings)->text, "x");

  EXPECT_EQ(Parsed(R"({"a.b": {"c\\d": "x"}})", {.text_field = R"(a\.b.c\\d)"})->text, "x");
}

TEST(JsonLineParser, IdsAreStringsOrIntegers) {
  auto id = [](const std::string& value) {
    Parsed line("{\"text\": \"a\", \"id\": " + value + "}");
    EXPECT_TRUE(line->ok);
    return std::string(line->id) + (line.repairs().unusable_ids > 0 ? "!" : "");
  };
  EXPECT_EQ(id("\"x/\\u00e9\""), "x/\xc3\xa9");
  EXPECT_EQ(id("-17"), "-17");
  EXPECT_EQ(id("18446744073709551615"), "18446744073709551615");
  EXPECT_EQ(id("null"), "");
  EXPECT_EQ(id("1.5"), "!");
  EXPECT_EQ(id("[1]"), "!");
  EXPECT_EQ(id("99999999999999999999999"), "!");
  EXPECT_EQ(Parsed(R"({"text": "a"})")->id, "");
  EXPECT_EQ(Parsed(R"({"text": "a", "id": 1, "id": 2})")->id, "");
  EXPECT_EQ(Parsed(R"({"text": "a", "id": 1})", {.id_field = ""})->id, "");
}

TEST(JsonLineParser, SurrogatesAndBadBytesFollowThePolicy) {
  Parsed replaced("{\"text\": \"a\\ud83d \xe9\"}");
  EXPECT_EQ(replaced->text, "a\uFFFD \uFFFD");
  EXPECT_EQ(replaced.repairs(), (Repairs{.invalid_utf8 = 1, .lone_surrogates = 1}));
  EXPECT_EQ(Parsed(R"({"text": "\uDE42"})")->text, "\uFFFD");
  EXPECT_EQ(Parsed(R"({"text": "\\ud83d"})")->text, "\\ud83d");

  Parsed rejected("{\"text\": \"a\xe9\"}", {.invalid_utf8 = InvalidUtf8Policy::kReject});
  EXPECT_EQ(rejected->reason, Reason::kInvalidUtf8);
  EXPECT_EQ(rejected->byte, 11);
  EXPECT_EQ(Parsed(R"({"text": "\ud83d"})", {.lone_surrogates = LoneSurrogatePolicy::kReject})->reason,
            Reason::kLoneSurrogate);
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
