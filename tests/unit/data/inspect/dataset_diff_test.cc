#include "worker/data/inspect/dataset_diff.h"

#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/data/inspect/text_dataset.h"

namespace llmctl::data {
namespace {

DatasetDiff Diff(const TextDataset& before, const TextDataset& after, uint64_t memory_bytes = 1 << 20) {
  TemporaryDirectory folder;
  auto first = *DatasetView::Open(before.path());
  auto second = *DatasetView::Open(after.path());
  LocalSpillFiles files;
  absl::StatusOr<DatasetDiff> diff =
      DiffDatasets(*first, *second, {.memory_bytes = memory_bytes, .folder = folder / "spill"}, files);
  EXPECT_TRUE(diff.ok()) << diff.status();
  EXPECT_TRUE(!std::filesystem::exists(folder / "spill") || std::filesystem::is_empty(folder / "spill"));
  return diff.value_or(DatasetDiff());
}

const std::string kLong = "a document whose first thirty-two tokens, bytes here, are alike";

TEST(DiffDatasets, FindsWhatIsInOneOnly) {
  TextDataset before({"one", "two", "two", kLong, "five"}, {"six"});
  TextDataset after({"seven", "five", "two", kLong + " in both", "six"});

  DatasetDiff diff = Diff(before, after);

  EXPECT_FALSE(diff.by_text);
  EXPECT_EQ(diff.same, 3) << "two once, five, six";
  EXPECT_EQ(diff.moved, 1) << "six";
  EXPECT_EQ(diff.removed, 2) << "one, and the other two";
  EXPECT_EQ(diff.added, 1) << "seven";
  EXPECT_EQ(diff.changed, 1);
  ASSERT_EQ(diff.changed_examples.size(), 1u);
  EXPECT_EQ(diff.changed_examples[0].before.document, 3);
  EXPECT_EQ(diff.changed_examples[0].after.document, 3);
  ASSERT_EQ(diff.added_examples.size(), 1u);
  EXPECT_EQ(diff.added_examples[0].document, 0);
  EXPECT_EQ(diff.removed_examples.size(), 2u);
}

TEST(DiffDatasets, OfADatasetWithItselfIsNothing) {
  TextDataset dataset({"one", "two", "two", kLong}, {"six"});
  DatasetDiff diff = Diff(dataset, dataset);
  EXPECT_EQ(diff.same, 5);
  EXPECT_EQ(diff.moved + diff.removed + diff.added + diff.changed, 0);
}

TEST(DiffDatasets, MemoryChangesNothing) {
  std::vector<std::string> texts, others;
  for (int i = 0; i < 20000; ++i) {
    texts.push_back("number " + std::to_string(i));
    if (i % 10 != 0) others.push_back(texts.back());
    if (i % 100 == 0) others.push_back("new " + std::to_string(i));
  }
  TextDataset before(texts), after(others);

  // 20,000 keys of 40 bytes are more than 256 KiB.
  DatasetDiff spilled = Diff(before, after, 1), held = Diff(before, after, 64 << 20);

  EXPECT_EQ(spilled.same, 18000);
  EXPECT_EQ(spilled.removed, 2000);
  EXPECT_EQ(spilled.added, 200);
  EXPECT_EQ(held.same, 18000);
  EXPECT_EQ(held.removed, 2000);
  EXPECT_EQ(held.added, 200);
  ASSERT_EQ(spilled.removed_examples.size(), held.removed_examples.size());
  for (size_t i = 0; i < held.removed_examples.size(); ++i) {
    EXPECT_EQ(spilled.removed_examples[i].document, held.removed_examples[i].document);
  }
}

}  // namespace
}  // namespace llmctl::data
