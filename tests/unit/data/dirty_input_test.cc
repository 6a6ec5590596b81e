// Dirty input is the normal case: each kind of fault that other tools trip over, between two good lines. The good
// lines must come through, the fault must be repaired or reported with its place, and nothing may stop the run.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/data/prepared_corpus.h"

namespace llmctl::data {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::IsEmpty;

constexpr char kGood[] = "{\"text\": \"good line.\"}\n";  // 23 bytes

struct DirtyCase {
  const char* name;
  std::string line;                    // between the good lines
  std::vector<std::string> documents;  // what it gives
  std::vector<std::string> rejects;
};

void PrintTo(const DirtyCase& dirty, std::ostream* out) { *out << dirty.name; }

class DirtyLine : public ::testing::TestWithParam<DirtyCase> {};

TEST_P(DirtyLine, DoesNotHarmItsNeighbours) {
  Preparation run;
  run.AddFile("a.jsonl", kGood + GetParam().line + "\n{\"text\": \"last line.\"}");

  absl::StatusOr<PreparedCorpus> corpus = run.Run();

  ASSERT_TRUE(corpus.ok()) << corpus.status();
  std::vector<std::string> expected = GetParam().documents;
  expected.insert(expected.begin(), "good line.");
  expected.push_back("last line.");
  EXPECT_THAT(run.Documents(), ElementsAreArray(expected));
  EXPECT_THAT(run.Rejects(), ElementsAreArray(GetParam().rejects));
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, DirtyLine,
    ::testing::Values(DirtyCase{"blank", "", {}, {}}, DirtyCase{"white_space", " \t\r", {}, {}},
                      DirtyCase{"carriage_return", "{\"text\": \"x\"}\r", {"x"}, {}},
                      DirtyCase{"carriage_returns_only", "{\"text\": \"x\"}\r{\"text\": \"y\"}", {"x", "y"}, {}},
                      DirtyCase{"invalid_utf8", "{\"text\": \"caf\xe9\"}", {"caf\uFFFD"}, {}},
                      DirtyCase{"overlong_utf8", "{\"text\": \"\xc0\xaf\"}", {"\uFFFD\uFFFD"}, {}},
                      DirtyCase{"surrogate_in_utf8", "{\"text\": \"\xed\xa0\xbd\"}", {"\uFFFD\uFFFD\uFFFD"}, {}},
                      DirtyCase{"lone_surrogate", R"({"text": "a\ud83d b"})", {"a\uFFFD b"}, {}},
                      DirtyCase{"surrogate_pair", R"({"text": "\ud83d\ude42"})", {"\U0001F642"}, {}},
                      DirtyCase{"escaped_nul", R"({"text": "a\u0000b"})", {"ab"}, {}},
                      DirtyCase{"raw_nul", std::string("{\"text\": \"a\0b\"}", 15), {}, {"a.jsonl:2:23 invalid_json"}},
                      DirtyCase{"nul_padding", std::string(64, '\0'), {}, {"a.jsonl:2:23 invalid_json"}},
                      DirtyCase{"raw_tab", "{\"text\": \"a\tb\"}", {}, {"a.jsonl:2:23 invalid_json"}},
                      DirtyCase{"truncated", R"({"text": "abc)", {}, {"a.jsonl:2:23 invalid_json"}},
                      DirtyCase{"trailing_comma", R"({"text": "abc",})", {}, {"a.jsonl:2:23 invalid_json"}},
                      DirtyCase{"not_a_number", R"({"x": NaN, "text": "abc"})", {}, {"a.jsonl:2:23 invalid_json"}},
                      DirtyCase{"big_integer", R"({"x": 99999999999999999999999, "text": "abc"})", {"abc"}, {}},
                      DirtyCase{"deep_nesting", std::string(4096, '['), {}, {"a.jsonl:2:23 invalid_json"}},
                      DirtyCase{"two_objects", R"({"text": "a"} {"text": "b"})", {}, {"a.jsonl:2:23 trailing_content"}},
                      DirtyCase{"array_element", R"({"text": "a"},)", {}, {"a.jsonl:2:23 trailing_content"}},
                      DirtyCase{"field_twice", R"({"text": "a", "text": "b"})", {}, {"a.jsonl:2:23 text_repeated"}},
                      DirtyCase{"field_missing", R"({"id": 1})", {}, {"a.jsonl:2:23 text_missing"}},
                      DirtyCase{"field_null", R"({"text": null})", {}, {"a.jsonl:2:23 text_null"}},
                      DirtyCase{"field_number", R"({"text": 123})", {}, {"a.jsonl:2:23 text_not_a_string"}},
                      DirtyCase{"field_list", R"({"text": ["a", "b"]})", {}, {"a.jsonl:2:23 text_not_a_string"}},
                      DirtyCase{"text_empty", R"({"text": ""})", {}, {"a.jsonl:2:23 empty"}},
                      DirtyCase{"text_blank", R"({"text": " \n\u3000"})", {}, {"a.jsonl:2:23 empty"}},
                      DirtyCase{"string", R"("text")", {}, {"a.jsonl:2:23 not_an_object"}},
                      DirtyCase{"number", "17", {}, {"a.jsonl:2:23 not_an_object"}},
                      DirtyCase{"line_separators", "{\"text\": \"a\u2028b\u2029c\"}", {"a\u2028b\u2029c"}, {}},
                      DirtyCase{"next_line_control",
                                "{\"text\": \"a\u0085"
                                "b\"}",
                                {"ab"},
                                {}}),
    [](const auto& info) { return info.param.name; });

TEST(DirtyFile, AByteOrderMarkIsNoPartOfTheFirstLine) {
  Preparation run;
  run.AddFile("a.jsonl", "\xEF\xBB\xBF" + std::string(kGood));
  run.AddFile("b.txt", "\xEF\xBB\xBFtext");

  absl::StatusOr<PreparedCorpus> corpus = run.Run();

  ASSERT_TRUE(corpus.ok()) << corpus.status();
  EXPECT_THAT(run.Documents(), ElementsAre("good line.", "text"));
  EXPECT_EQ(corpus->report["counters"]["byte order marks"], 2);
}

TEST(DirtyFile, Utf16IsReportedOnceAndNotGuessedAt) {
  Preparation run;
  run.AddFile("a.jsonl", std::string("\xFF\xFE{\0\"\0t\0\n\0{\0\n\0", 14));
  run.AddFile("b.jsonl", kGood);

  ASSERT_TRUE(run.Run().ok());

  EXPECT_THAT(run.Documents(), ElementsAre("good line."));
  EXPECT_THAT(run.Rejects(), ElementsAre("a.jsonl:1:0 utf16_file"));
}

TEST(DirtyFile, ATextFileInLatin1IsKeptWithReplacements) {
  Preparation run;
  run.AddFile("a.txt", "caf\xe9 \xe0 la carte");

  absl::StatusOr<PreparedCorpus> corpus = run.Run();

  ASSERT_TRUE(corpus.ok());
  EXPECT_THAT(run.Documents(), ElementsAre("caf\uFFFD \uFFFD la carte"));
  EXPECT_EQ(corpus->report["counters"]["invalid UTF-8 replaced"], 2);
}

TEST(DirtyFile, UnderThePolicyToRejectTheBadByteIsNamed) {
  Preparation run;
  run.config.read.invalid_utf8 = "reject";
  run.AddFile("a.jsonl", kGood + std::string("{\"text\": \"caf\xe9\"}\n"));
  run.AddFile("b.txt", "one\ntwo \xff");

  ASSERT_TRUE(run.Run().ok());

  EXPECT_THAT(run.Documents(), ElementsAre("good line."));
  EXPECT_THAT(run.Rejects(), ElementsAre("a.jsonl:2:36 invalid_utf8", "b.txt:2:8 invalid_utf8"));
}

TEST(DirtyFile, EmptyFilesAreNoDocuments) {
  Preparation run;
  run.AddFile("a.jsonl", "");
  run.AddFile("b.txt", "");
  run.AddFile("c.txt", "\n\n");
  run.AddFile("d.txt", "x");

  ASSERT_TRUE(run.Run().ok());

  EXPECT_THAT(run.Documents(), ElementsAre("x"));
  EXPECT_THAT(run.Rejects(), ElementsAre("c.txt:1:0 empty"));
}

}  // namespace
}  // namespace llmctl::data
