// Exact deduplication of documents, paragraphs and lines.
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/data/dedup/dedup_runs.h"
#include "tests/unit/data/memory_files.h"

namespace llmctl::data {
namespace {

using ::testing::ElementsAre;

using Texts = std::vector<std::string>;

std::vector<std::string> UnitsOf(const std::string& text, TextUnit unit) {
  std::vector<std::string> out;
  ForEachUnit(text, unit, [&](uint64_t number, absl::string_view compared) {
    EXPECT_EQ(number, out.size());
    out.emplace_back(compared);
  });
  return out;
}

class ExactDedup : public ::testing::Test {
 protected:
  // (document, unit, first document, first unit) of every repeat.
  std::vector<std::vector<uint64_t>> RepeatsOf(const Texts& texts, ExactSettings settings) {
    std::vector<Texts> parts = Cut(texts, {texts.size() / 2});
    ExactPlan plan{settings, "/" + std::to_string(runs_++), DigestsFor(parts)};
    absl::StatusOr<ExactSummary> summary = RunExact(plan, parts, {{&files_, kPlenty}});
    EXPECT_TRUE(summary.ok()) << summary.status();
    absl::StatusOr<RepeatReader> reader = RepeatReader::Open(plan, files_);
    EXPECT_TRUE(reader.ok()) << reader.status();
    std::vector<std::vector<uint64_t>> out;
    std::vector<Repeat> repeats;
    for (uint64_t document = 0; reader.ok() && document < texts.size(); ++document) {
      repeats.clear();
      EXPECT_TRUE(reader->Find(document, repeats).ok());
      for (const Repeat& r : repeats) out.push_back({r.document, r.unit, r.first_document, r.first_unit});
    }
    EXPECT_EQ(summary->repeats, out.size());
    return out;
  }

  MemoryFiles files_;
  int runs_ = 0;
};

TEST(TextUnits, ParagraphsAreBetweenBlankLines) {
  EXPECT_THAT(UnitsOf("a\nb\n\n \n c \n\nd", TextUnit::kParagraph), ElementsAre("a\nb", "c", "d"));
  EXPECT_THAT(UnitsOf("\n\na", TextUnit::kParagraph), ElementsAre("", "a"));
  EXPECT_TRUE(UnitsOf("", TextUnit::kParagraph).empty());
}

TEST(TextUnits, LinesAreUpToANewline) {
  EXPECT_THAT(UnitsOf("a\n b\t\n\nc", TextUnit::kLine), ElementsAre("a", "b", "", "c"));
}

TEST(TextUnits, RemovedUnitsTakeTheirNewlinesAlong) {
  EXPECT_EQ(RemoveUnits("a\n\nb\n\nc", TextUnit::kParagraph, {1}), "a\n\nc");
  EXPECT_EQ(RemoveUnits("a\n\nb\n\nc", TextUnit::kParagraph, {2}), "a\n\nb");
  EXPECT_EQ(RemoveUnits("a\nb\nc\n", TextUnit::kLine, {0, 2}), "b");
  EXPECT_EQ(RemoveUnits("a\nb\n", TextUnit::kLine, {}), "a\nb\n");
  EXPECT_EQ(RemoveUnits("a", TextUnit::kDocument, {0}), "");
}

TEST_F(ExactDedup, DocumentsAreEqualByteByByte) {
  EXPECT_THAT(RepeatsOf({"a", "b", "a ", "a", "", "b", "", "a"}, {TextUnit::kDocument}),
              ElementsAre(ElementsAre(3, 0, 0, 0), ElementsAre(5, 0, 1, 0), ElementsAre(6, 0, 4, 0),
                          ElementsAre(7, 0, 0, 0)));
}

TEST_F(ExactDedup, ParagraphsAreComparedAcrossAndWithinDocuments) {
  EXPECT_THAT(RepeatsOf({"x\n\ny\n\nx", "z", "y\n\n\nw\n\n"}, {TextUnit::kParagraph}),
              ElementsAre(ElementsAre(0, 2, 0, 0), ElementsAre(2, 0, 0, 1)));
}

TEST_F(ExactDedup, BlankAndShortLinesAreNoRepeats) {
  ExactSettings settings{TextUnit::kLine, 2};
  EXPECT_THAT(RepeatsOf({"}\n\nlong\n}", "}\n  long", ""}, settings), ElementsAre(ElementsAre(1, 1, 0, 2)));
}

TEST_F(ExactDedup, BytesOfTheResultDependOnTheTextsAlone) {
  TextMaker maker(8);
  Texts texts;
  for (int i = 0; i < 4000; ++i) {
    std::string text;
    for (uint64_t lines = 1 + maker.rng().Below(8); lines > 0; --lines) {
      text += maker.rng().Below(3) == 0 ? "line " + std::to_string(maker.rng().Below(300)) : maker.Text(4);
      text += maker.rng().Below(4) == 0 ? "\n\n" : "\n";
    }
    texts.push_back(maker.rng().Below(5) == 0 && i > 0 ? texts[maker.rng().Below(i)] : text);
  }
  for (TextUnit unit : {TextUnit::kDocument, TextUnit::kParagraph, TextUnit::kLine}) {
    std::string expected;
    std::vector<size_t> many;
    for (size_t cut = 0; cut < 4000; cut += 130) many.push_back(cut);
    const std::pair<std::vector<size_t>, uint64_t> cases[] = {{{}, kPlenty}, {{7, 7}, kTaskMemoryMin},
                                                              {many, kTaskMemoryMin}};
    for (const auto& [cuts, memory] : cases) {
      std::vector<Texts> parts = Cut(texts, cuts);
      ExactPlan plan{{unit}, "/" + std::to_string(runs_++), DigestsFor(parts)};
      absl::StatusOr<ExactSummary> summary = RunExact(plan, parts, {{&files_, memory}, 2});
      ASSERT_TRUE(summary.ok()) << summary.status();
      EXPECT_GT(summary->repeats, 500u);
      if (expected.empty()) expected = ResultOf(plan, files_);
      EXPECT_EQ(ResultOf(plan, files_), expected) << TextUnitName(unit) << ", " << parts.size() << " parts";
    }
  }
}

}  // namespace
}  // namespace llmctl::data
