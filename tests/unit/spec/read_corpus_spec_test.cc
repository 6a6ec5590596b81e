#include "common/spec/read_corpus_spec.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace llmctl::spec {
namespace {

std::string ValidCorpus() {
  return "apiVersion: llmctl/v1\n"     // 1
         "kind: Corpus\n"              // 2
         "metadata: {name: web}\n"     // 3
         "output: out\n"               // 4
         "sources:\n"                  // 5
         "  - name: crawl\n"           // 6
         "    paths: [a.jsonl, b/]\n"  // 7
         "  - name: books\n"           // 8
         "    paths:\n"                // 9
         "      - c.parquet\n"         // 10
         "    textField: body.text\n"  // 11
         "nearDedup:\n"                // 12
         "  bands: 20\n";              // 13
}

std::string Refusal(absl::string_view from, absl::string_view to) {
  std::string text = absl::StrReplaceAll(ValidCorpus(), {{from, to}});
  EXPECT_NE(text, ValidCorpus()) << from;
  return std::string(ReadCorpusSpec(text, "corpus.yaml").status().message());
}

TEST(ReadCorpusSpec, ReadsLists) {
  absl::StatusOr<v1::CorpusSpec> spec = ReadCorpusSpec(ValidCorpus(), "corpus.yaml");

  ASSERT_TRUE(spec.ok()) << spec.status();
  ASSERT_EQ(spec->sources_size(), 2);
  EXPECT_THAT(spec->sources(0).paths(), testing::ElementsAre("a.jsonl", "b/"));
  EXPECT_THAT(spec->sources(1).paths(), testing::ElementsAre("c.parquet"));
  EXPECT_EQ(spec->sources(1).text_field(), "body.text");
  EXPECT_EQ(spec->near_dedup().bands(), 20);
}

TEST(ReadCorpusSpec, SaysWhereAListIsWrong) {
  EXPECT_EQ(Refusal("paths: [a.jsonl, b/]", "pathz: [a.jsonl]"),
            "corpus.yaml:7:5: sources[0].pathz: unknown field; did you mean paths?");
  EXPECT_EQ(Refusal("[a.jsonl, b/]", "a.jsonl"),
            "corpus.yaml:7:12: sources[0].paths: found \"a.jsonl\", expected a list, each a string");
  EXPECT_EQ(Refusal("- c.parquet", "- 2024"),
            "corpus.yaml:10:9: sources[1].paths[0]: found 2024, expected a string; if the text is meant, write "
            "\"2024\"");
  EXPECT_EQ(Refusal("  - name: books\n    paths:\n      - c.parquet\n    textField: body.text\n", "  - books\n"),
            "corpus.yaml:8:5: sources[1]: found \"books\", expected a section with name, paths, textField, idField, "
            "format");
  EXPECT_EQ(Refusal("[a.jsonl, b/]", "[]"),
            "corpus.yaml:7:5: sources[0].paths: found none, expected at least one, each a string");
}

TEST(ReadCorpusSpec, ChecksWhatFieldsSayTogether) {
  EXPECT_EQ(Refusal("name: books", "name: crawl"),
            "corpus.yaml:8:11: sources[1].name: found \"crawl\" a second time, expected a name for each source");
  EXPECT_EQ(Refusal("bands: 20", "bands: 1024\n  rows: 256"),
            "corpus.yaml:13:10: nearDedup.bands: found 1024, expected bands x rows of at most 16384");
  EXPECT_EQ(Refusal("nearDedup:\n  bands: 20", "language: {detector: fasttext}"),
            "corpus.yaml:12:1: language.model: missing, expected the path of a fastText model such as lid.176.ftz");
  EXPECT_EQ(Refusal("nearDedup:\n  bands: 20", "exactDedup: {units: [line, document, line]}"),
            "corpus.yaml:12:38: exactDedup.units[2]: found line a second time, expected each unit once");
  EXPECT_EQ(Refusal("nearDedup:\n  bands: 20", "exactDedup: {units: [lines]}"),
            "corpus.yaml:12:22: exactDedup.units[0]: found \"lines\", expected one of document, paragraph, line; did "
            "you mean line?");
  EXPECT_EQ(Refusal("nearDedup:\n  bands: 20", "mix: {method: explicit}"),
            "corpus.yaml:12:1: mix.weights: missing, expected a group and a weight each, as mix.method is explicit");
}

TEST(ReadCorpusSpec, AllFaultsAtOnce) {
  std::string text = absl::StrReplaceAll(ValidCorpus(), {{"bands: 20", "bands: 0"}, {"kind: Corpus", "kind: Corps"}});

  EXPECT_EQ(ReadCorpusSpec(text, "c.yaml").status().message(),
            "c.yaml:2:7: kind: found \"Corps\", expected Corpus\n"
            "c.yaml:13:10: nearDedup.bands: found 0, expected a whole number from 1 to 1024");
}

TEST(ApplyCorpusDefaults, AStageIsThereOnlyIfItIsNamed) {
  v1::CorpusSpec spec = *ReadCorpusSpec(ValidCorpus(), "corpus.yaml");

  ApplyCorpusDefaults(spec);

  EXPECT_EQ(spec.memory(), "2G");
  EXPECT_EQ(spec.sources(0).text_field(), "text");
  EXPECT_EQ(spec.sources(0).format(), "auto");
  EXPECT_EQ(spec.normalize().form(), "NFC");
  EXPECT_EQ(spec.near_dedup().rows(), 8);
  EXPECT_FALSE(spec.has_quality());
  EXPECT_FALSE(spec.has_exact_dedup());
  EXPECT_FALSE(spec.has_mix());
}

TEST(ApplyCorpusDefaults, QualityWithoutFiltersIsThatOfFineWeb) {
  v1::CorpusSpec spec = *ReadCorpusSpec(absl::StrCat(ValidCorpus(), "quality: {}\nexactDedup:\n"), "corpus.yaml");
  v1::CorpusSpec own =
      *ReadCorpusSpec(absl::StrCat(ValidCorpus(), "quality: {c4: {sentencesMin: 0}}\n"), "corpus.yaml");

  ApplyCorpusDefaults(spec);
  ApplyCorpusDefaults(own);

  EXPECT_TRUE(spec.quality().has_gopher_repetition());
  EXPECT_TRUE(spec.quality().has_fineweb());
  EXPECT_FALSE(spec.quality().has_paragraphs());
  EXPECT_FALSE(spec.quality().c4().terminal_mark_required());
  EXPECT_EQ(spec.quality().c4().sentences_min(), 5);
  EXPECT_THAT(spec.exact_dedup().units(), testing::ElementsAre("document"));
  EXPECT_FALSE(own.quality().has_fineweb());
  EXPECT_TRUE(own.quality().c4().terminal_mark_required());
  EXPECT_EQ(own.quality().c4().sentences_min(), 0);
}

TEST(KindOf, TellsSpecificationsApart) {
  EXPECT_EQ(KindOf(ValidCorpus()), "Corpus");
  EXPECT_EQ(KindOf("kind: TrainingJob\n"), "TrainingJob");
  EXPECT_EQ(KindOf("- a\n"), "");
  EXPECT_EQ(KindOf("kind: [a\n"), "");
}

}  // namespace
}  // namespace llmctl::spec
