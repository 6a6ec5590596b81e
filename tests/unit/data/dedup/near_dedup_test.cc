// Whole near deduplications: who is in a cluster, who is kept, and that nothing else but the texts decides.
#include <map>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/data/dedup/dedup_runs.h"
#include "tests/unit/data/memory_files.h"
#include "worker/data/dedup/document_set.h"
#include "worker/data/dedup/union_find.h"

namespace llmctl::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

using Texts = std::vector<std::string>;

class NearDedup : public ::testing::Test {
 protected:
  NearPlan PlanFor(const std::vector<Texts>& parts, const std::string& name = "run") {
    return {settings_, "/" + name, DigestsFor(parts)};
  }

  RunOptions Options(uint64_t memory = kPlenty, int threads = 1) { return {{&files_, memory}, threads}; }

  // The result for texts in one part.
  std::vector<Duplicate> DuplicatesOf(const Texts& texts) {
    std::vector<Texts> parts = {texts};
    NearPlan plan = PlanFor(parts, "of" + std::to_string(runs_++));
    absl::StatusOr<NearSummary> summary = RunNear(plan, parts, Options());
    EXPECT_TRUE(summary.ok()) << summary.status();
    summary_ = summary.value_or(NearSummary{});
    return ReadAll(plan, texts.size());
  }

  std::vector<Duplicate> ReadAll(const NearPlan& plan, size_t documents) {
    absl::StatusOr<DuplicateReader> reader = DuplicateReader::Open(plan, files_);
    EXPECT_TRUE(reader.ok()) << reader.status();
    std::vector<Duplicate> out;
    for (size_t i = 0; reader.ok() && i < documents; ++i) {
      absl::StatusOr<std::optional<Duplicate>> found = reader->Find(i);
      EXPECT_TRUE(found.ok()) << found.status();
      if (found.ok() && *found) out.push_back(**found);
    }
    return out;
  }

  MemoryFiles files_;
  NearSettings settings_;
  NearSummary summary_;
  int runs_ = 0;
};

std::map<uint64_t, std::set<uint64_t>> ClustersOf(const std::vector<Duplicate>& duplicates) {
  std::map<uint64_t, std::set<uint64_t>> clusters;
  for (const Duplicate& duplicate : duplicates) {
    clusters[duplicate.kept].insert(duplicate.kept);
    clusters[duplicate.kept].insert(duplicate.document);
  }
  return clusters;
}

// Twice a few hundred texts, copies and near copies among them, and a few short ones.
Texts Mixed(int count, uint64_t seed) {
  TextMaker maker(seed);
  Texts texts;
  for (int i = 0; i < count; ++i) {
    uint64_t kind = maker.rng().Below(10);
    if (texts.empty() || kind < 6) {
      texts.push_back(maker.Text(20 + maker.rng().Below(60)));
    } else if (kind == 6) {
      texts.push_back(maker.rng().Below(3) == 0 ? "" : "short one " + std::to_string(maker.rng().Below(5)));
    } else {
      const std::string& other = texts[maker.rng().Below(texts.size())];
      texts.push_back(kind == 7 ? other : maker.Changed(other, 1 + maker.rng().Below(3)));
    }
  }
  return texts;
}

TEST_F(NearDedup, KeepsTheFirstOfEachClusterAndSaysWhatWasFound) {
  TextMaker maker(1);
  std::string a = maker.Text(100), b = maker.Text(100);

  std::vector<Duplicate> duplicates = DuplicatesOf({b, a, maker.Text(50), a, maker.Changed(a, 1), b});

  ASSERT_EQ(duplicates.size(), 3u);
  EXPECT_EQ(duplicates[0].document, 3u);
  EXPECT_EQ(duplicates[0].kept, 1u);
  EXPECT_EQ(duplicates[0].match, 1u);
  EXPECT_EQ(duplicates[0].kept_jaccard, 1);
  EXPECT_EQ(duplicates[1].document, 4u);
  EXPECT_EQ(duplicates[1].kept, 1u);
  EXPECT_NEAR(duplicates[1].kept_jaccard, 91.0 / 101, 0.15);  // five shingles of 96 differ
  EXPECT_EQ(duplicates[2].document, 5u);
  EXPECT_EQ(duplicates[2].kept, 0u);
  EXPECT_EQ(summary_.documents, 6u);
  EXPECT_EQ(summary_.clusters, 2u);
  EXPECT_EQ(summary_.clustered, 5u);
  EXPECT_EQ(summary_.removed, 3u);
  EXPECT_EQ(summary_.largest, 3u);
}

TEST_F(NearDedup, DocumentsShorterThanAShingleAreComparedByteByByte) {
  std::vector<Duplicate> duplicates = DuplicatesOf({"one two", "One two", "", "one two", "...", "", "three, four!"});

  ASSERT_EQ(duplicates.size(), 2u);
  EXPECT_EQ(duplicates[0].document, 3u);
  EXPECT_EQ(duplicates[0].kept, 0u);
  EXPECT_EQ(duplicates[0].kept_jaccard, 1);
  EXPECT_EQ(duplicates[1].document, 5u);
  EXPECT_EQ(duplicates[1].kept, 2u);
  EXPECT_EQ(summary_.short_documents, 7u);
}

// Windows of one long text: those that overlap almost wholly are one cluster, those apart are none.
TEST_F(NearDedup, OverlappingWindowsAreClustersOfTheirOwn) {
  const std::string text = TextMaker(2).Text(600);
  std::vector<std::vector<size_t>> groups = {{0, 20, 50}, {400, 420}, {800, 810, 840, 860}, {1205, 1225, 1245}, {1600},
                                             {2000}};
  Texts windows;
  std::vector<std::set<uint64_t>> expected;
  for (const std::vector<size_t>& offsets : groups) {
    std::set<uint64_t> cluster;
    for (size_t offset : offsets) {
      cluster.insert(windows.size());
      windows.push_back(text.substr(offset, 400));
    }
    if (cluster.size() > 1) expected.push_back(cluster);
  }
  // 20 characters of 400 are about four words of 70, and cut two in pieces; four rows see to it that such pairs meet.
  settings_.bands = 28;
  settings_.rows = 4;

  std::map<uint64_t, std::set<uint64_t>> clusters = ClustersOf(DuplicatesOf(windows));

  ASSERT_EQ(clusters.size(), expected.size());
  for (const std::set<uint64_t>& cluster : expected) EXPECT_EQ(clusters[*cluster.begin()], cluster);
}

// A is like B and B like C, but A not like C: one cluster, and C knows that it was found by way of B.
TEST_F(NearDedup, AChainIsOneClusterAndNamesTheNeighbour) {
  settings_.bands = 50;
  settings_.rows = 4;
  settings_.jaccard_min = 0.5;
  TextMaker maker(4);
  const std::string one = maker.Text(50), two = maker.Text(150), three = maker.Text(50);

  std::vector<Duplicate> duplicates =
      DuplicatesOf({one + " " + two, two + " " + three, two.substr(two.size() / 3) + " " + three});

  ASSERT_EQ(duplicates.size(), 2u);
  EXPECT_EQ(duplicates[1].document, 2u);
  EXPECT_EQ(duplicates[1].kept, 0u);
  EXPECT_LT(duplicates[1].kept_jaccard, 0.5);
  EXPECT_EQ(duplicates[1].match, 1u);
  EXPECT_GE(duplicates[1].match_jaccard, 0.5);
}

TEST_F(NearDedup, TheJaccardCheckDropsPairsThatMetByChance) {
  settings_.bands = 56;
  settings_.rows = 2;  // a threshold of 0.13: pairs of a third meet almost surely
  TextMaker maker(6);
  std::string a = maker.Text(200);
  std::string near = maker.Changed(a, 3), far = a.substr(0, a.size() / 2) + " " + maker.Text(100);

  ASSERT_EQ(DuplicatesOf({a, near, far}).size(), 2u);
  settings_.jaccard_min = 0.8;
  std::vector<Duplicate> checked = DuplicatesOf({a, near, far, "x", "x"});

  ASSERT_EQ(checked.size(), 2u);
  EXPECT_EQ(checked[0].document, 1u);
  EXPECT_GE(checked[0].kept_jaccard, 0.8);
  EXPECT_EQ(checked[1].document, 4u);  // short ones pass: they are equal
  EXPECT_EQ(checked[1].kept_jaccard, 1);
  EXPECT_GT(summary_.candidates, summary_.pairs);
}

TEST_F(NearDedup, BytesOfTheResultDependOnTheTextsAlone) {
  const Texts texts = Mixed(3000, 9);
  for (bool check : {false, true}) {
    if (check) settings_.jaccard_min = 0.7;
    std::vector<Texts> whole = {texts};
    NearPlan plan = PlanFor(whole, check ? "checked" : "plain");
    absl::StatusOr<NearSummary> summary = RunNear(plan, whole, Options());
    ASSERT_TRUE(summary.ok()) << summary.status();
    ASSERT_GT(summary->removed, 500u);
    const std::string expected = ResultOf(plan, files_);

    struct Case {
      std::vector<size_t> cuts;
      uint64_t memory;
      int threads;
    };
    std::vector<size_t> many;
    for (size_t cut = 0; cut < 2990; cut += 100) many.push_back(cut);
    const Case cases[] = {{{}, kTaskMemoryMin, 1}, {{1, 1, 1500}, kPlenty, 3}, {many, kTaskMemoryMin, 2}};
    for (const Case& c : cases) {
      std::vector<Texts> parts = Cut(texts, c.cuts);
      NearPlan cut_plan = PlanFor(parts, std::to_string(runs_++));
      summary = RunNear(cut_plan, parts, Options(c.memory, c.threads));
      ASSERT_TRUE(summary.ok()) << summary.status();
      EXPECT_EQ(ResultOf(cut_plan, files_), expected) << parts.size() << " parts, " << c.memory << " bytes";
    }
  }
}

TEST_F(NearDedup, AFinishedTaskNeedsNoTextAndOtherInputMakesItAnew) {
  std::vector<Texts> parts = {Mixed(50, 1), Mixed(50, 2)};
  NearPlan plan = PlanFor(parts);
  ASSERT_TRUE(RunNear(plan, parts, Options()).ok());
  auto signer = *Signer::Make(settings_);

  EXPECT_TRUE((*SignatureTask::Open(plan, 1, *signer, Options().resources))->done());
  plan.part_digests[1] = "changed";
  EXPECT_FALSE((*SignatureTask::Open(plan, 1, *signer, Options().resources))->done());
}

TEST_F(NearDedup, ATaskWithoutItsInputSaysWhichTaskToRun) {
  std::vector<Texts> parts = {Mixed(20, 1), Mixed(20, 2)};
  NearPlan plan = PlanFor(parts);
  auto signer = *Signer::Make(settings_);
  ASSERT_TRUE(Feed(SignatureTask::Open(plan, 0, *signer, Options().resources), parts[0]).ok());

  absl::Status band = RunBandTask(plan, 0, Options().resources);
  EXPECT_EQ(band.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(band.message()), HasSubstr("task of part 1 is not finished"));

  ASSERT_TRUE(Feed(SignatureTask::Open(plan, 1, *signer, Options().resources), parts[1]).ok());
  ASSERT_TRUE(RunBandTask(plan, 0, Options().resources).ok());
  absl::Status clusters = RunClusterTask(plan, Options().resources).status();
  EXPECT_EQ(clusters.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(clusters.message()), HasSubstr("band task 1 of 15 is not finished"));
}

TEST_F(NearDedup, TooLittleMemoryIsSaidWithWhatIsNeeded) {
  absl::Status least = RunBandTask(PlanFor({}), 0, Options(1000).resources);
  EXPECT_THAT(std::string(least.message()), HasSubstr("needs at least 262144 bytes"));
}

TEST_F(NearDedup, NothingInNothingOut) {
  EXPECT_TRUE(DuplicatesOf({}).empty());
  std::vector<Texts> parts;
  NearPlan plan = PlanFor(parts, "no parts");
  absl::StatusOr<NearSummary> summary = RunNear(plan, parts, Options());
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_EQ(summary->documents, 0u);
}

TEST_F(NearDedup, DuplicatesAreFoundInAnyOrder) {
  Texts texts = Mixed(200, 3);
  for (int i = 0; i < 5000; ++i) texts.push_back("same");  // more than a block of records
  std::vector<Duplicate> duplicates = DuplicatesOf(texts);
  absl::StatusOr<DuplicateReader> reader = DuplicateReader::Open(
      {settings_, "/of" + std::to_string(runs_ - 1), {"part of " + std::to_string(texts.size())}}, files_);
  ASSERT_TRUE(reader.ok()) << reader.status();
  std::map<uint64_t, uint64_t> kept;
  for (const Duplicate& duplicate : duplicates) kept[duplicate.document] = duplicate.kept;
  SeededRng rng(1);
  for (int i = 0; i < 2000; ++i) {
    uint64_t document = rng.Below(texts.size());
    absl::StatusOr<std::optional<Duplicate>> found = reader->Find(document);
    ASSERT_TRUE(found.ok()) << found.status();
    ASSERT_EQ(found->has_value(), kept.contains(document)) << document;
    if (found->has_value()) {
      EXPECT_EQ((*found)->kept, kept[document]);
    }
  }
}

template <typename Index>
class UnionFindOf : public ::testing::Test {};
using Indices = ::testing::Types<uint32_t, uint64_t>;
TYPED_TEST_SUITE(UnionFindOf, Indices);

TYPED_TEST(UnionFindOf, TheLeastMemberStandsForASet) {
  UnionFind<TypeParam> sets(10);
  sets.Join(9, 8);
  sets.Join(3, 9);
  sets.Join(5, 6);
  sets.Join(6, 8);
  for (int member : {3, 5, 6, 8, 9}) EXPECT_EQ(sets.Find(member), 3u);
  EXPECT_EQ(sets.Find(7), 7u);
}

TEST(DocumentSet, NumbersItsMembersDensely) {
  DocumentSet set(5000);
  SeededRng rng(2);
  std::set<uint64_t> members;
  for (int i = 0; i < 700; ++i) members.insert(rng.Below(5000));
  for (uint64_t member : members) set.Insert(member);
  EXPECT_EQ(set.Number(), members.size());
  uint64_t number = 0, next = 0;
  for (uint64_t member : members) {
    EXPECT_EQ(set.NumberOf(member), number);
    EXPECT_EQ(set.MemberAt(number), member);
    EXPECT_EQ(set.Next(next), member);
    next = member + 1;
    ++number;
  }
  EXPECT_GE(set.Next(next), 5000u);
}

}  // namespace
}  // namespace llmctl::data
