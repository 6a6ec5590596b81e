#include "worker/data/pack/packed_writer.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/file.h"
#include "common/base/rng.h"
#include "tests/unit/data/written_dataset.h"
#include "worker/data/shards/index_format.h"
#include "worker/data/shards/loader.h"

namespace llmctl::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int kEnd = 0;

class PackedTest : public ::testing::Test {
 protected:
  // Settings whose windows hold all that a test writes, unless it says otherwise.
  PackedTest() { settings_ = {.sequence_length = 7, .window_tokens = 1000}; }

  SplitInfo Write(const Documents& documents) {
    auto writer = CreatePackedWriter(folder_.path(), "train", 300, settings_);
    EXPECT_TRUE(writer.ok()) << writer.status();
    for (const std::vector<int32_t>& document : documents) EXPECT_TRUE((*writer)->AddDocument(document).ok());
    return Finish(**writer);
  }

  SplitInfo Finish(ShardWriter& writer) {
    absl::StatusOr<SplitInfo> split = writer.Finish();
    EXPECT_TRUE(split.ok()) << split.status();
    manifest_ = DatasetManifest{.tokenizer = "byte", .vocabulary_size = 300, .end_of_document = kEnd};
    manifest_.splits = {*split};
    manifest_.source_json = "{}";
    manifest_.packing = PackingInfo{settings_.row_tokens(), 299};
    EXPECT_TRUE(WriteManifest(folder_.path(), manifest_).ok());
    reader_ = *ShardReader::Open(folder_.path(), "train");
    return *split;
  }

  // The tokens of each row, pieces apart.
  std::vector<Documents> Rows() const {
    std::vector<Documents> rows;
    for (int64_t row = 0; row < reader_->rows(); ++row) {
      ShardReader::SequenceRange range = *reader_->Row(row);
      Documents& pieces = rows.emplace_back();
      for (int64_t i = range.begin; i < range.end; ++i) {
        ShardReader::Sequence piece = *reader_->At(i);
        pieces.emplace_back(piece.length);
        reader_->Copy(piece.begin, absl::MakeSpan(pieces.back()));
      }
    }
    return rows;
  }

  MicroBatch Read(int64_t begin, int64_t end) {
    SamplerSpec spec = *MakeSamplerSpec(manifest_, manifest_.splits[0], "digest", settings_.sequence_length);
    spec.shuffle = false;
    Sampler sampler = *Sampler::Create(spec);
    auto batches = ReadMicroBatches(*reader_, sampler, {begin, end}, BatchOptionsOf(manifest_, 8));
    EXPECT_TRUE(batches.ok()) << batches.status();
    return batches->at(0);
  }

  TemporaryDirectory folder_;
  PackSettings settings_;
  DatasetManifest manifest_;
  std::unique_ptr<ShardReader> reader_;
};

// Tokens from, from + 1, ..., and the end.
std::vector<int32_t> Document(int32_t from, int length) {
  std::vector<int32_t> out;
  for (int i = 0; i + 1 < length; ++i) out.push_back(from + i);
  out.push_back(kEnd);
  return out;
}

TEST_F(PackedTest, RowsHoldWholeDocumentsInTheOrderOfTheirFirst) {
  SplitInfo split = Write({Document(10, 3), Document(20, 6), Document(30, 5), Document(40, 2)});

  // By falling length: 6 and 5 begin rows, the 3 fits the 5 exactly, the 2 the 6.
  EXPECT_THAT(Rows(), ElementsAre(Documents{Document(10, 3), Document(30, 5)},
                                  Documents{Document(20, 6), Document(40, 2)}));
  EXPECT_EQ(split.documents, 4);
  EXPECT_EQ(split.tokens, 16);
  EXPECT_EQ(split.packed->rows, 2);
  EXPECT_EQ(split.packed->pieces, 4);
  EXPECT_EQ(split.packed->cut_documents, 0);
  EXPECT_EQ(split.packed->padding_tokens, 0);
}

TEST_F(PackedTest, ALongDocumentIsCutIntoRowsAndARest) {
  SplitInfo split = Write({Document(10, 19), Document(50, 4)});

  std::vector<int32_t> whole = Document(10, 19);
  auto piece = [&](int begin, int end) { return std::vector<int32_t>(whole.begin() + begin, whole.begin() + end); };
  EXPECT_THAT(Rows(), ElementsAre(Documents{piece(0, 8)}, Documents{piece(8, 16)},
                                  Documents{piece(16, 19), Document(50, 4)}));
  EXPECT_EQ(split.packed->cut_documents, 1);
  EXPECT_EQ(split.packed->padding_tokens, 1);
  EXPECT_EQ(split.documents, 2);
  EXPECT_FALSE(reader_->At(0)->continues);
  EXPECT_TRUE(reader_->At(1)->continues);
  EXPECT_TRUE(reader_->At(2)->continues);
  EXPECT_FALSE(reader_->At(3)->continues);
}

TEST_F(PackedTest, TruncationKeepsTheFirstRowAndSaysWhatIsGone) {
  settings_.long_documents = LongDocuments::kTruncate;

  SplitInfo split = Write({Document(10, 19), Document(50, 4)});

  EXPECT_EQ(split.tokens, 12);
  EXPECT_EQ(split.packed->truncated_documents, 1);
  EXPECT_EQ(split.packed->truncated_tokens, 11);
  EXPECT_EQ(split.packed->cut_documents, 0);
}

TEST_F(PackedTest, MegatronsReaderFindsARowWhereItLooksForADocument) {
  Write({Document(10, 3), Document(20, 6), Document(30, 5), Document(40, 2)});

  std::string idx = *ReadFile(folder_ / "train.idx");
  auto value = [&](size_t at, auto example) {
    std::memcpy(&example, idx.data() + at, sizeof example);
    return static_cast<int64_t>(example);
  };
  EXPECT_EQ(value(18, uint64_t{}), 4);
  EXPECT_EQ(value(26, uint64_t{}), 3);
  for (auto [i, length] : {std::pair{0, 3}, {1, 5}, {2, 6}, {3, 2}}) EXPECT_EQ(value(34 + 4 * i, int32_t{}), length);
  for (auto [i, offset] : {std::pair{0, 0}, {1, 6}, {2, 16}, {3, 28}}) EXPECT_EQ(value(50 + 8 * i, int64_t{}), offset);
  for (auto [i, mark] : {std::pair{0, 0}, {1, 2}, {2, 4}}) EXPECT_EQ(value(82 + 8 * i, int64_t{}), mark);
  EXPECT_EQ(idx.size(), 106u + 4u);
  EXPECT_TRUE(CheckIndex(idx).ok());
}

TEST_F(PackedTest, BatchesPadRowsAndCountNoTargetAcrossTheirEdges) {
  // Two rows: a rest of the cut document behind another document, and a part empty one.
  Write({Document(10, 9 + 2), Document(50, 5), Document(60, 6)});
  ASSERT_THAT(Rows(), ElementsAre(Documents{{10, 11, 12, 13, 14, 15, 16, 17}},
                                  Documents{{18, 19, 0}, Document(50, 5)}, Documents{Document(60, 6)}));

  MicroBatch batch = Read(0, 3);

  EXPECT_THAT(batch.inputs, ElementsAre(10, 11, 12, 13, 14, 15, 16,  //
                                        18, 19, 0, 50, 51, 52, 53,   //
                                        60, 61, 62, 63, 64, 0, 299));
  EXPECT_THAT(batch.targets, ElementsAre(11, 12, 13, 14, 15, 16, 17,  //
                                         19, 0, 50, 51, 52, 53, 0,    //
                                         61, 62, 63, 64, 0, -1, -1));
  EXPECT_THAT(batch.document_starts, ElementsAre(0, 7, 10, 14, 20, 21));
}

TEST_F(PackedTest, TheStartOfAContinuedPieceIsNoTarget) {
  // The rest comes behind a document that was before it in the input.
  Write({Document(50, 4), Document(10, 11)});
  ASSERT_THAT(Rows(),
              ElementsAre(Documents{Document(50, 4), {18, 19, 0}}, Documents{{10, 11, 12, 13, 14, 15, 16, 17}}));

  MicroBatch batch = Read(0, 1);

  EXPECT_THAT(batch.inputs, ElementsAre(50, 51, 52, 0, 18, 19, 0));
  EXPECT_THAT(batch.targets, ElementsAre(51, 52, 0, -1, 19, 0, -1));
  EXPECT_THAT(batch.document_starts, ElementsAre(0, 4, 7));
}

TEST_F(PackedTest, AKilledWriterLeavesOnlyWhatTheNextOneReplaces) {
  auto writer = *CreatePackedWriter(folder_.path(), "train", 300, settings_);
  ASSERT_TRUE(writer->AddDocument(Document(10, 3)).ok());
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
    names.push_back(entry.path().filename().string());
  }
  EXPECT_THAT(names, ::testing::UnorderedElementsAre("train.bin.tmp", "train.idx.tmp"));
}

TEST_F(PackedTest, GroupsHaveRowsOfTheirOwn) {
  auto writer = *CreatePackedWriter(folder_.path(), "train", 300, settings_);
  ASSERT_TRUE(writer->BeginGroup("wiki/en").ok());
  ASSERT_TRUE(writer->AddDocument(Document(10, 3)).ok());
  ASSERT_TRUE(writer->BeginGroup("wiki/fr").ok());
  ASSERT_TRUE(writer->AddDocument(Document(20, 4)).ok());
  ASSERT_TRUE(writer->AddDocument(Document(30, 8)).ok());
  SplitInfo split = Finish(*writer);

  ASSERT_EQ(split.groups.size(), 2u);
  EXPECT_EQ(split.groups[0].begin, 0);
  EXPECT_EQ(split.groups[0].end, 1);
  EXPECT_EQ(split.groups[1].end, 3);
  EXPECT_EQ(split.groups[1].documents, 2);
  EXPECT_EQ(split.groups[1].tokens, 12);
  EXPECT_EQ(split.groups[1].weight, 0.8);
  DatasetManifest read = *ReadManifest(folder_.path());
  EXPECT_EQ(read.splits[0].groups[1].name, "wiki/fr");
  EXPECT_EQ(read.packing->row_tokens, 8);
}

TEST_F(PackedTest, EveryTokenIsThereOnceWhateverTheWindow) {
  SeededRng rng(3);
  Documents documents;
  std::vector<int32_t> all;
  for (int i = 0; i < 500; ++i) {
    std::vector<int32_t>& document = documents.emplace_back(1 + rng.Below(i % 7 == 0 ? 40 : 9));
    for (int32_t& token : document) token = static_cast<int32_t>(rng.Below(300));
    all.insert(all.end(), document.begin(), document.end());
  }
  std::sort(all.begin(), all.end());
  int64_t padding = 1 << 20;
  for (int64_t window : {128, 1000, 100000}) {
    settings_.window_tokens = window;
    SplitInfo split = Write(documents);
    std::vector<int32_t> found(reader_->tokens());
    reader_->Copy(0, absl::MakeSpan(found));
    std::sort(found.begin(), found.end());
    EXPECT_EQ(found, all);
    for (const Documents& row : Rows()) {
      size_t size = 0;
      for (const std::vector<int32_t>& piece : row) size += piece.size();
      EXPECT_LE(size, 8u);
    }
    EXPECT_LT(split.packed->padding_tokens, padding) << "a larger window leaves less";
    padding = split.packed->padding_tokens;
  }
}

TEST_F(PackedTest, EveryTokenButTheFirstOfARowAndOfARestIsATargetOnce) {
  SeededRng rng(4);
  Documents documents;
  for (int i = 0; i < 200; ++i) documents.emplace_back(1 + rng.Below(20), 5);
  Write(documents);
  int64_t expected = reader_->tokens() - reader_->rows(), targets = 0;
  for (int64_t row = 0; row < reader_->rows(); ++row) {
    ShardReader::SequenceRange pieces = *reader_->Row(row);
    for (int64_t i = pieces.begin + 1; i < pieces.end; ++i) expected -= reader_->At(i)->continues;
  }

  for (int64_t row = 0; row < reader_->rows(); ++row) {
    MicroBatch batch = Read(row, row + 1);
    targets += std::count_if(batch.targets.begin(), batch.targets.end(), [](int32_t target) { return target >= 0; });
    EXPECT_TRUE(std::is_sorted(batch.document_starts.begin(), batch.document_starts.end()));
  }
  EXPECT_EQ(targets, expected);
}

TEST_F(PackedTest, ASequenceLengthThatIsNotTheRowsIsRefused) {
  Write({Document(10, 3)});

  absl::Status status = MakeSamplerSpec(manifest_, manifest_.splits[0], "digest", 8).status();

  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("packed for sequences of 7"));
}

TEST(PackSettings, AllFaultsAreInOneMessage) {
  std::string message(PackSettings{.sequence_length = 0, .window_tokens = int64_t{1} << 40}.Validate().message());
  EXPECT_THAT(message, HasSubstr("sequence_length"));
  EXPECT_THAT(message, HasSubstr("window_tokens"));
  EXPECT_FALSE((PackSettings{.sequence_length = 100, .window_tokens = 1000}.Validate().ok()));
  EXPECT_TRUE(PackSettings().Validate().ok());
}

}  // namespace
}  // namespace llmctl::data
