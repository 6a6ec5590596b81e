#include "common/spec/read_job_spec.h"

#include <ostream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

#include "tests/unit/spec/valid_spec.h"

namespace llmctl::spec {
namespace {

std::string MessageOf(const std::string& yaml) {
  return std::string(ReadJobSpec(yaml, "job.yaml").status().message());
}

struct BadFile {
  const char* name;
  std::string yaml;
  std::string message;
};

void PrintTo(const BadFile& file, std::ostream* out) { *out << file.name; }

class BadFiles : public testing::TestWithParam<BadFile> {};

TEST_P(BadFiles, AreRefusedWithPlaceAndReason) { EXPECT_EQ(MessageOf(GetParam().yaml), GetParam().message); }

std::string Nested(int levels) {
  return absl::StrCat("a: ", std::string(levels, '['), std::string(levels, ']'), "\n");
}

std::string AliasBomb() {
  std::string out = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 10; ++i) {
    absl::StrAppend(&out, "a", i, ": &a", i, " [");
    for (int k = 0; k < 10; ++k) absl::StrAppend(&out, k ? ", " : "", "*a", i - 1);
    absl::StrAppend(&out, "]\n");
  }
  return out;
}

INSTANTIATE_TEST_SUITE_P(
    Types, BadFiles,
    testing::Values(
        BadFile{"QuotedNumber", Damaged("layers: 4", "layers: \"10\""),
                "job.yaml:7:11: model.layers: found the string \"10\", expected a whole number from 1 to 1024; remove "
                "the quotes"},
        BadFile{"Octal", Damaged("layers: 4", "layers: 010"),
                "job.yaml:7:11: model.layers: found 010, expected a whole number from 1 to 1024; a leading zero means "
                "octal to some readers: write the number without it"},
        BadFile{"Hexadecimal", Damaged("layers: 4", "layers: 0x10"),
                "job.yaml:7:11: model.layers: found 0x10, expected a whole number from 1 to 1024; write it in decimal"},
        BadFile{"Separators", Damaged("steps: 600", "steps: 1_000"),
                "job.yaml:14:10: training.steps: found 1_000, expected a whole number from 1 to 1000000000; write the "
                "digits without separators"},
        BadFile{"ExponentInWholeNumber", Damaged("steps: 600", "steps: 1e3"),
                "job.yaml:14:10: training.steps: found 1e3, expected a whole number from 1 to 1000000000; write 1000"},
        BadFile{"Fraction", Damaged("layers: 4", "layers: 4.5"),
                "job.yaml:7:11: model.layers: found 4.5, expected a whole number from 1 to 1024"},
        BadFile{"TooLargeForItsType", Damaged("layers: 4", "layers: 99999999999"),
                "job.yaml:7:11: model.layers: found 99999999999, expected a whole number from 1 to 1024"},
        BadFile{"YesIsNotABoolean", Damaged("  heads: 4", "  heads: 4\n  tieEmbeddings: yes"),
                "job.yaml:10:18: model.tieEmbeddings: found yes, expected true or false; write true"},
        BadFile{"Infinity", Damaged("  heads: 4", "  heads: 4\n  ropeTheta: .inf"),
                "job.yaml:10:14: model.ropeTheta: found .inf, expected a number of at least 1"},
        BadFile{"OverflowingDouble", Damaged("  heads: 4", "  heads: 4\n  ropeTheta: 1e999"),
                "job.yaml:10:14: model.ropeTheta: found 1e999, expected a number of at least 1"},
        BadFile{"NumberAsString", Damaged("dataset: data", "dataset: 123"),
                "job.yaml:11:12: data.dataset: found 123, expected a string; if the text is meant, write \"123\""},
        BadFile{"BooleanAsEnvironmentValue", absl::StrCat(ValidYaml(), "env:\n  DEBUG: yes\n"),
                "job.yaml:20:10: env.DEBUG: found yes, expected a string; if the text is meant, write \"yes\""},
        BadFile{"Null", Damaged("steps: 600", "steps:"),
                "job.yaml:14:3: training.steps: found nothing, expected a whole number from 1 to 1000000000"},
        BadFile{"ListForNumber", Damaged("layers: 4", "layers: [4]"),
                "job.yaml:7:11: model.layers: found a list, expected a whole number from 1 to 1024"},
        BadFile{"TextForSection", Damaged("data:\n  dataset: data\n  sequenceLength: 256\n", "data: here\n"),
                "job.yaml:10:7: data: found \"here\", expected a section with dataset, sequenceLength"},
        BadFile{"SectionForText", Damaged("dataset: data", "dataset: {path: data}"),
                "job.yaml:11:12: data.dataset: found a section, expected a string"},
        BadFile{"SectionForEnvironmentValue", absl::StrCat(ValidYaml(), "env: {A: {B: c}}\n"),
                "job.yaml:19:10: env.A: found a section, expected a string"},
        BadFile{"Tag", Damaged("layers: 4", "layers: !!int \"4\""),
                "job.yaml:7:11: found the tag tag:yaml.org,2002:int, expected none: the field decides the type"}),
    [](const auto& info) { return std::string(info.param.name); });

INSTANTIATE_TEST_SUITE_P(
    Names, BadFiles,
    testing::Values(
        BadFile{"MisspeltField", Damaged("hiddenSize", "hidenSize"),
                "job.yaml:8:3: model.hidenSize: unknown field; did you mean hiddenSize?"},
        BadFile{"SnakeCaseField", Damaged("hiddenSize", "hidden_size"),
                "job.yaml:8:3: model.hidden_size: unknown field; did you mean hiddenSize?"},
        BadFile{"UnknownField", Damaged("  sequenceLength: 256", "  sequenceLength: 256\n  colour: red"),
                "job.yaml:13:3: data.colour: unknown field, expected one of dataset, sequenceLength"},
        BadFile{"DuplicateKey", Damaged("  heads: 4", "  heads: 4\n  heads: 8"),
                "job.yaml:10:3: model.heads: found a second time (first in line 9), expected once"},
        BadFile{"DuplicateSection", absl::StrCat(ValidYaml(), "data: {dataset: x, sequenceLength: 8}\n"),
                "job.yaml:19:1: data: found a second time (first in line 10), expected once"},
        BadFile{"DuplicateEnvironmentName", absl::StrCat(ValidYaml(), "env:\n  A: b\n  A: c\n"),
                "job.yaml:21:3: env.A: found a second time (first in line 20), expected once"},
        BadFile{"KeyThatIsAList", absl::StrCat(ValidYaml(), "? [a, b]\n: c\n"),
                "job.yaml:19:3: found a list as a name, expected text"}),
    [](const auto& info) { return std::string(info.param.name); });

INSTANTIATE_TEST_SUITE_P(
    Values, BadFiles,
    testing::Values(
        BadFile{"BelowRange", Damaged("layers: 4", "layers: 0"),
                "job.yaml:7:11: model.layers: found 0, expected a whole number from 1 to 1024"},
        BadFile{"AboveRange", Damaged("layers: 4", "layers: 1025"),
                "job.yaml:7:11: model.layers: found 1025, expected a whole number from 1 to 1024"},
        BadFile{"Missing", Damaged("  directory: checkpoints\n", "  everySteps: 10\n"),
                "job.yaml:17:1: checkpoint.directory: missing, expected a string"},
        BadFile{"EmptySectionMissesItsFields",
                Damaged("  dataset: data\n  sequenceLength: 256\n", "  # dataset: data\n"),
                "job.yaml:10:1: data.dataset: missing, expected a string\n"
                "job.yaml:10:1: data.sequenceLength: missing, expected a whole number from 8 to 1048576"},
        BadFile{"MissingSection", Damaged("checkpoint:\n  directory: checkpoints\n", ""),
                "job.yaml:1:1: checkpoint: missing, expected a section with directory, everySteps, keepLast"},
        BadFile{"EmptyRequiredText", Damaged("dataset: data", "dataset: ''"),
                "job.yaml:11:12: data.dataset: found \"\", expected a string"},
        BadFile{"NotOneOf", Damaged("  steps: 600", "  steps: 600\n  precision: bf17"),
                "job.yaml:15:14: training.precision: found \"bf17\", expected one of fp32, bf16; did you mean bf16?"},
        BadFile{"OnlyOneChoice", Damaged("llmctl/v1", "llmctl/v2"),
                "job.yaml:1:13: apiVersion: found \"llmctl/v2\", expected llmctl/v1"},
        BadFile{"Pattern", Damaged("name: tiny", "name: My Job"),
                "job.yaml:4:9: metadata.name: found \"My Job\", expected 1 to 63 lower-case letters, digits and '-', "
                "beginning and ending with a letter or digit"},
        BadFile{"Duration", absl::StrCat(ValidYaml(), "timeLimit: soon\n"),
                "job.yaml:19:12: timeLimit: found \"soon\", expected a duration above zero such as 90s, 10m or 1h30m"},
        BadFile{"DurationWithoutUnit", absl::StrCat(ValidYaml(), "timeLimit: \"90\"\n"),
                "job.yaml:19:12: timeLimit: found \"90\", expected a duration above zero such as 90s, 10m or 1h30m"},
        BadFile{"HeadsDoNotDivide", Damaged("heads: 4", "heads: 7"),
                "job.yaml:9:10: model.heads: found 7, expected a divisor of model.hiddenSize (256)"}),
    [](const auto& info) { return std::string(info.param.name); });

INSTANTIATE_TEST_SUITE_P(
    Text, BadFiles,
    testing::Values(
        BadFile{"Empty", "",
                "job.yaml:1:1: found an empty file, expected a specification (examples/ has some)"},
        BadFile{"OnlyComments", "# nothing\n",
                "job.yaml:1:1: found an empty file, expected a specification (examples/ has some)"},
        BadFile{"NotAMap", "- a\n- b\n", "job.yaml:1:1: found a list, expected `name: value` lines"},
        BadFile{"TwoDocuments", absl::StrCat(ValidYaml(), "---\na: b\n"),
                "job.yaml:19:1: found a second document, expected one: split the file"},
        BadFile{"Tab", Damaged("  layers", "\tlayers"),
                "job.yaml:7:1: found a tab in the indentation, expected spaces"},
        BadFile{"NotUtf8", Damaged("tiny", "t\xC3\xA9\xFFx"),
                "job.yaml:4:11: found the byte 0xff, which is not UTF-8 here, expected UTF-8 text"},
        BadFile{"Utf16", std::string("\xFF\xFE" "a\0:\0", 6),
                "job.yaml:1:1: found the byte 0xff, which is not UTF-8 here, expected UTF-8 text"},
        BadFile{"ControlCharacter", Damaged("tiny", std::string("t\0y", 3)),
                "job.yaml:4:10: found the control character 0x00, expected UTF-8 text"},
        BadFile{"ColumnsCountCharacters",
                Damaged("metadata:\n  name: tiny", "metadata: {labels: {k: \"é é\"}, nme: x}"),
                "job.yaml:3:21: metadata.labels.k: found \"é é\", expected up to 63 letters, digits, '-', '.' and '_'\n"
                "job.yaml:3:32: metadata.nme: unknown field; did you mean name?"},
        BadFile{"BrokenSyntax", "a: [1, 2\n",
                "job.yaml:2:1: found text that is not YAML (end of sequence flow not found), expected `name: value` "
                "lines; check indentation and quotes"},
        BadFile{"TooDeep", Nested(100), "job.yaml:1:35: found more than 32 levels of nesting, expected fewer"},
        BadFile{"TooDeepForTheParser", Nested(50000),
                "job.yaml:1:35: found more than 32 levels of nesting, expected fewer"},
        BadFile{"AliasBomb", AliasBomb(),
                "job.yaml:5:5: found more than 20000 values with all aliases written out, expected fewer"},
        BadFile{"AliasOfItself", "a: &a [*a]\n",
                "job.yaml:1:8: found an alias inside its own anchor, expected one that ends: write it out"},
        BadFile{"TooLong", std::string(2 << 20, '#'),
                "job.yaml:1:1: found 2097152 bytes, expected at most 131072: is this the right file?"}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(ReadJobSpec, ReadsWhatWasWritten) {
  absl::StatusOr<v1::JobSpec> spec = ReadJobSpec(
      absl::StrCat(ValidYaml(), "env: {A: \"1\", B: two words}\npriority: 0\ntimeLimit: 1h30m\n"), "job.yaml");

  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->metadata().name(), "tiny");
  EXPECT_EQ(spec->model().hidden_size(), 256);
  EXPECT_EQ(spec->env().at("A"), "1");
  EXPECT_EQ(spec->env().at("B"), "two words");
  EXPECT_TRUE(spec->has_priority()) << "0 is a choice, not an absent field";
  EXPECT_FALSE(spec->training().has_seed()) << "defaults are not the reader's business";
}

TEST(ReadJobSpec, FollowsAliasesThatAreHarmless) {
  absl::StatusOr<v1::JobSpec> spec =
      ReadJobSpec(absl::StrCat(Damaged("dataset: data", "dataset: &where data"), "initFrom: *where\n"), "job.yaml");

  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->init_from(), "data");
}

TEST(ReadJobSpec, TakesAByteOrderMarkAndWindowsLineEnds) {
  std::string yaml = "\xEF\xBB\xBF" + absl::StrReplaceAll(ValidYaml(), {{"\n", "\r\n"}});

  EXPECT_TRUE(ReadJobSpec(yaml, "job.yaml").ok()) << MessageOf(yaml);
}

TEST(ReadJobSpec, ReportsAllFaultsInTheOrderOfTheFile) {
  std::string message = MessageOf(
      "apiVersion: llmctl/v1\nkind: TrainingJob\nmetadata: {name: UPPER}\nmodel:\n  architecture: lama\n  layers: x\n"
      "  hiddenSize: 8\n  heads: 2\ndata: {dataset: d, sequenceLength: 1}\ntraining: 5\n");

  EXPECT_THAT(message, testing::StartsWith("job.yaml:1:1: checkpoint: missing"));
  std::vector<std::string> places = {"job.yaml:3:18: metadata.name", "job.yaml:5:17: model.architecture",
                                     "job.yaml:6:11: model.layers", "job.yaml:7:15: model.hiddenSize",
                                     "job.yaml:9:36: data.sequenceLength", "job.yaml:10:11: training"};
  size_t at = 0;
  for (const std::string& place : places) {
    at = message.find(place, at);
    EXPECT_NE(at, std::string::npos) << place << " not found, or out of order, in:\n" << message;
  }
}

}  // namespace
}  // namespace llmctl::spec
