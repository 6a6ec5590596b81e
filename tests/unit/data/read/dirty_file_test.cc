// Files as users send them to tools that read JSON lines: what each must give. Good lines come through whatever lies
// beside them, and what is wrong is repaired and counted, or reported with its place.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/data/read/read_runs.h"

namespace llmctl::data {
namespace {

using ::testing::ElementsAreArray;

const std::string kA = "{\"text\": \"first good line.\", \"id\": 1}\n";   // 38 bytes
const std::string kB = "{\"text\": \"second good line.\", \"id\": 2}\n";  // 39 bytes
constexpr char kGoodA[] = "1:0 1=first good line.";
constexpr char kGoodB[] = "2:38 2=second good line.";
struct DirtyFile {
  std::string name;
  std::string content;
  std::vector<std::string> documents;
  std::vector<std::string> rejects;
  Repairs repairs = {};
  std::string suffix = ".jsonl";
};

void PrintTo(const DirtyFile& file, std::ostream* out) { *out << file.name; }

class Dirty : public ReadRuns, public ::testing::WithParamInterface<DirtyFile> {};

TEST_P(Dirty, GivesWhatItShould) {
  Result read = Read("a" + GetParam().suffix, GetParam().content);

  EXPECT_THAT(read.documents, ElementsAreArray(GetParam().documents));
  EXPECT_THAT(read.rejects, ElementsAreArray(GetParam().rejects));
  EXPECT_EQ(read.repairs, GetParam().repairs);
}

// A file of the two good lines and a third.
DirtyFile Third(const std::string& name, const std::string& line, const std::string& document,
                const std::string& reject, Repairs repairs = {}) {
  DirtyFile out{name, kA + kB + line + "\n", {kGoodA, kGoodB}, {}, repairs};
  if (!document.empty()) out.documents.push_back("3:77 " + document);
  if (!reject.empty()) out.rejects.push_back("3:77 " + reject);
  return out;
}

std::vector<DirtyFile> LineFiles() {
  return {
      Third("nul_raw_in_string", std::string("{\"text\": \"a\0b\"}", 15), "", "invalid_json"),
      Third("nul_escaped", R"({"text": "a\u0000b"})", std::string("a\0b", 3), ""),
      Third("nul_padding_tail", std::string(64, '\0'), "", "invalid_json"),
      Third("ctrl_raw_tab_in_string", "{\"text\": \"a\tb\"}", "", "invalid_json"),
      Third("bad_utf8_in_string", "{\"text\": \"caf\xe9\"}", "caf\uFFFD", "", {.invalid_utf8 = 1}),
      Third("overlong_utf8", "{\"text\": \"\xc0\xaf\"}", "\uFFFD\uFFFD", "", {.invalid_utf8 = 2}),
      Third("utf8_surrogate_bytes", "{\"text\": \"\xed\xa0\xbd\"}", "\uFFFD\uFFFD\uFFFD", "", {.invalid_utf8 = 3}),
      Third("lone_surrogate_escape", R"({"text": "a\ud83d"})", "a\uFFFD", "", {.lone_surrogates = 1}),
      Third("pair_escape", R"({"text": "\ud83d\ude42"})", "\U0001F642", ""),
      Third("truncated_json_middle", R"({"text": "cut in the)", "", "invalid_json"),
      Third("two_objects_on_a_line", R"({"text": "a"} {"text": "b"})", "", "trailing_content"),
      Third("trailing_comma", R"({"text": "a",})", "", "invalid_json"),
      Third("nan_value", R"({"text": "a", "x": NaN})", "", "invalid_json"),
      Third("dup_keys", R"({"text": "a", "text": "b"})", "", "text_repeated"),
      Third("text_missing", R"({"body": "a"})", "", "text_missing"),
      Third("text_null", R"({"text": null})", "", "text_null"),
      Third("text_number", R"({"text": 123})", "", "text_not_a_string"),
      Third("text_list", R"({"text": ["a", "b"]})", "", "text_not_a_string"),
      Third("text_empty", R"({"text": ""})", "", "empty"),
      Third("text_blank", R"({"text": " \n"})", "", "empty"),
      Third("line_is_string", R"("text")", "", "not_an_object"),
      Third("line_is_number", "17", "", "not_an_object"),
      Third("u2028_u0085_in_text", "{\"text\": \"a\u2028b\u2029c\xc2\x85 d\"}", "a\u2028b\u2029c\xc2\x85 d", ""),
      Third("deep_nesting", std::string(2000, '[') + std::string(2000, ']'), "", "invalid_json"),
      Third("big_int", R"({"text": "a", "n": 99999999999999999999999999})", "a", ""),
      Third("long_line", "{\"text\": \"" + std::string(4000000, 'w') + "\"}", std::string(4000000, 'w'), ""),
  };
}

std::vector<DirtyFile> WholeFiles() {
  std::string latin1 = "{\"text\": \"caf\xe9 d\xe9j\xe0\"}\n";
  std::string utf16("\xFF\xFE{\0\"\0t\0\"\0}\0\n\0", 14);
  std::string no_final = kA + kB.substr(0, kB.size() - 1);
  std::string cr_only = kA.substr(0, 37) + "\r" + kB.substr(0, 38) + "\r";
  std::string crlf = kA.substr(0, 37) + "\r\n" + kB.substr(0, 38) + "\r\n";
  return {
      {"plain", kA + kB, {kGoodA, kGoodB}, {}},
      {"bom", "\xEF\xBB\xBF" + kA + kB, {"1:3 1=first good line.", "2:41 2=second good line."}, {},
       {.byte_order_marks = 1}},
      {"crlf", crlf, {kGoodA, "2:39 2=second good line."}, {}},
      {"cr_only", cr_only, {kGoodA, "1:38 2=second good line."}, {}},
      {"no_final_newline", no_final, {kGoodA, kGoodB}, {}},
      {"blank_lines", "\n" + kA + "\n \t\n" + kB, {"2:1 1=first good line.", "5:43 2=second good line."}, {}},
      {"truncated_json_end", kA + kB + "{\"text\": \"cut", {kGoodA, kGoodB}, {"3:77 invalid_json"}},
      {"json_array_file", "[\n" + kA.substr(0, 37) + ",\n" + kB + "]\n", {"3:41 2=second good line."},
       {"1:0 invalid_json", "2:2 trailing_content", "4:80 invalid_json"}},
      {"utf16le_file", utf16, {}, {"1:0 utf16_file"}},
      {"latin1_file", latin1, {"1:0 caf\uFFFD d\uFFFDj\uFFFD"}, {}, {.invalid_utf8 = 3}},
      {"empty_file", "", {}, {}},
      {"gz_two_members", Gzip(kA) + Gzip(kB), {kGoodA, kGoodB}, {}, {}, ".jsonl.gz"},
      {"gz_trailing_garbage", Gzip(kA + kB) + "garbage", {kGoodA, kGoodB}, {}, {.trailing_garbage = 1}, ".jsonl.gz"},
      {"gz_zero_padding", Gzip(kA + kB) + std::string(512, '\0'), {kGoodA, kGoodB}, {}, {}, ".jsonl.gz"},
      {"gz_empty", "", {}, {}, {}, ".jsonl.gz"},
      {"gz_named_but_plain", kA + kB, {kGoodA, kGoodB}, {}, {.misnamed_files = 1}, ".jsonl.gz"},
      {"gz_of_utf16", Gzip(utf16), {}, {"1:0 utf16_file"}, {}, ".jsonl.gz"},
      {"zst_two_frames", Zstd(kA) + Zstd(kB), {kGoodA, kGoodB}, {}, {}, ".jsonl.zst"},
      {"zst_no_size", Zstd(kA + kB, {.content_size = false}), {kGoodA, kGoodB}, {}, {}, ".jsonl.zst"},
      {"zst_skippable_frame", std::string("\x50\x2a\x4d\x18\x02\0\0\0xy", 10) + Zstd(kA + kB), {kGoodA, kGoodB}, {}, {},
       ".jsonl.zst"},
      {"zst_long_window", Zstd(kA + kB, {.content_size = false, .window_log = 27}), {kGoodA, kGoodB}, {}, {},
       ".jsonl.zst"},
  };
}

auto NameOf = [](const auto& info) { return info.param.name; };
INSTANTIATE_TEST_SUITE_P(Lines, Dirty, ::testing::ValuesIn(LineFiles()), NameOf);
INSTANTIATE_TEST_SUITE_P(Files, Dirty, ::testing::ValuesIn(WholeFiles()), NameOf);

TEST_F(ReadRuns, TheBadByteIsNamedWhereThePolicyIsToReject) {
  settings_.invalid_utf8 = InvalidUtf8Policy::kReject;

  EXPECT_THAT(Read("a.jsonl", kA + "{\"text\": \"caf\xe9\"}\n" + kB).rejects, ElementsAreArray({"2:51 invalid_utf8"}));
  EXPECT_THAT(Read("a.txt", "one\ntwo \xff").rejects, ElementsAreArray({"2:8 invalid_utf8"}));
}

}  // namespace
}  // namespace llmctl::data
