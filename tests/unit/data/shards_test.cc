#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/digest.h"
#include "common/base/file.h"
#include "tests/unit/data/written_dataset.h"
#include "worker/data/shards/index_format.h"

namespace llmctl::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

template <typename T>
std::string Bytes(std::initializer_list<T> values) {
  return std::string(reinterpret_cast<const char*>(values.begin()), values.size() * sizeof(T));
}

TEST(Shards, FilesAreMegatronsByteForByte) {
  TemporaryDirectory folder;

  SplitInfo info = WriteSplit(folder.path(), "train", 260, {{1, 2, 256}, {259}, {3, 256}});

  std::string idx = std::string("MMIDIDX\0\0", 9) + Bytes<uint64_t>({1}) + Bytes<uint8_t>({8}) +
                    Bytes<uint64_t>({3, 4}) + Bytes<int32_t>({3, 1, 2}) + Bytes<int64_t>({0, 6, 8}) +
                    Bytes<int64_t>({0, 1, 2, 3});
  std::string bin = Bytes<uint16_t>({1, 2, 256, 259, 3, 256});
  EXPECT_EQ(*ReadFile(folder / "train.idx"), idx);
  EXPECT_EQ(*ReadFile(folder / "train.bin"), bin);
  EXPECT_EQ(info.documents, 3);
  EXPECT_EQ(info.tokens, 6);
  EXPECT_EQ(info.bin_checksum, Checksum128(bin));
  EXPECT_EQ(info.idx_checksum, Checksum128(idx));
}

TEST(Shards, ALargeVocabularyIsStoredAsInt32) {
  TemporaryDirectory folder;
  WriteDataset(folder.path(), 100000, {{99999, 1}, {65536}});

  EXPECT_EQ(*ReadFile(folder / "train.bin"), Bytes<int32_t>({99999, 1, 65536}));
  auto reader = ShardReader::Open(folder.path(), "train");
  ASSERT_TRUE(reader.ok()) << reader.status();
  std::vector<int32_t> out(2);
  (*reader)->Copy(1, absl::MakeSpan(out));
  EXPECT_THAT(out, ElementsAre(1, 65536));
}

TEST(Shards, DocumentsReadAsOneStream) {
  TemporaryDirectory folder;
  WriteDataset(folder.path(), 260, {{1, 2, 256}, {259}, {3, 256}});

  auto reader = ShardReader::Open(folder.path(), "train");

  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_EQ((*reader)->tokens(), 6);
  EXPECT_EQ((*reader)->documents(), 3);
  std::vector<int32_t> out(4);
  (*reader)->Copy(2, absl::MakeSpan(out));
  EXPECT_THAT(out, ElementsAre(256, 259, 3, 256));
}

TEST(Shards, ManyDocumentsPassThePiecesOfTheIndex) {
  TemporaryDirectory folder;
  Documents documents;
  for (int i = 0; i < 70000; ++i) documents.push_back(std::vector<int32_t>(1 + i % 3, i % 260));
  WriteDataset(folder.path(), 260, documents);

  auto reader = ShardReader::Open(folder.path(), "train");

  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_EQ((*reader)->documents(), 70000);
  EXPECT_EQ(std::filesystem::file_size(folder / "train.idx"), 42u + 20u * 70000);
}

TEST(Shards, WriterRefusesWhatTheFormatCannotHold) {
  TemporaryDirectory folder;
  auto writer = ShardWriter::Create(folder.path(), "train", 260);
  ASSERT_TRUE(writer.ok());

  EXPECT_THAT(std::string((*writer)->AddDocument({1, 260}).message()), HasSubstr("token 260"));
  EXPECT_FALSE((*writer)->AddDocument({-1}).ok());
  EXPECT_FALSE((*writer)->AddDocument({}).ok());
}

TEST(Shards, ATruncatedFileIsRefused) {
  for (const char* name : {"train.bin", "train.idx"}) {
    TemporaryDirectory folder;
    WriteDataset(folder.path(), 260, {{1, 2, 256}, {259}});
    std::filesystem::resize_file(folder / name, std::filesystem::file_size(folder / name) - 1);

    absl::Status status = ShardReader::Open(folder.path(), "train").status();

    EXPECT_TRUE(absl::IsDataLoss(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(name));
  }
}

TEST(Shards, FilesOfAnotherDatasetAreRefused) {
  TemporaryDirectory folder;
  DatasetManifest manifest = WriteDataset(folder.path(), 260, {{1, 2, 256}, {259}});
  WriteSplit(folder.path(), "train", 260, {{1, 2}});

  EXPECT_THAT(std::string(ShardReader::Open(folder.path(), "train").status().message()),
              HasSubstr("not of one dataset"));
  EXPECT_TRUE(absl::IsInvalidArgument(ShardReader::Open(folder.path(), "test").status()));
}

std::vector<std::string> FilesIn(const TemporaryDirectory& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    names.push_back(entry.path().filename().string());
  }
  return names;
}

TEST(Shards, HaveTheirNamesOnlyOnceTheyAreWhole) {
  TemporaryDirectory folder;
  auto writer = *ShardWriter::Create(folder.path(), "train", 260);
  ASSERT_TRUE(writer->AddDocument({1, 2}).ok());
  EXPECT_THAT(FilesIn(folder), UnorderedElementsAre("train.bin.tmp", "train.idx.tmp"));

  writer.reset();
  EXPECT_THAT(FilesIn(folder), IsEmpty()) << "what was given up leaves nothing";

  WriteSplit(folder.path(), "train", 260, {{1, 2}});
  EXPECT_THAT(FilesIn(folder), UnorderedElementsAre("train.bin", "train.idx"));
}

// Files that this process writes can have so many bytes.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    ::signal(SIGXFSZ, SIG_IGN);
    rlimit limit = {bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() { ::setrlimit(RLIMIT_FSIZE, &before_); }

 private:
  rlimit before_;
};

TEST(Shards, ADiskThatTakesNoMoreIsSaidAndLeavesNothing) {
  TemporaryDirectory folder;
  absl::Status added;
  {
    auto writer = *ShardWriter::Create(folder.path(), "train", 100000);
    FileSizeLimit limit(3 << 20);
    const std::vector<int32_t> document(100000, 7);
    for (int i = 0; i < 20 && added.ok(); ++i) added = writer->AddDocument(document);
    EXPECT_EQ(writer->Finish().status(), added) << "a writer that has failed must not finish";
  }
  EXPECT_THAT(std::string(added.message()), HasSubstr("train.bin.tmp"));
  EXPECT_THAT(std::string(added.message()), HasSubstr("File too large"));
  EXPECT_THAT(FilesIn(folder), IsEmpty());
}

TEST(Shards, AnIndexThatDoesNotFitTheDiskLeavesNoBinEither) {
  TemporaryDirectory folder;
  {
    auto writer = *ShardWriter::Create(folder.path(), "train", 260);
    FileSizeLimit limit(100000);
    for (int i = 0; i < 10000; ++i) ASSERT_TRUE(writer->AddDocument({1}).ok());
    EXPECT_THAT(std::string(writer->Finish().status().message()), HasSubstr("train.idx.tmp"));
  }
  EXPECT_THAT(FilesIn(folder), IsEmpty());
}

TEST(Shards, GroupsAreRangesOfTheStreamThatCoverIt) {
  TemporaryDirectory folder;
  auto writer = *ShardWriter::Create(folder.path(), "train", 260);
  for (const char* group : {"a", "b/en", "c"}) {
    ASSERT_TRUE(writer->BeginGroup(group).ok());
    for (int documents = group[0] - 'a'; documents >= 0 && group[0] != 'c'; --documents) {
      ASSERT_TRUE(writer->AddDocument(documents == 1 ? std::vector<int32_t>{4, 5, 6, 7, 8, 9}
                                                     : std::vector<int32_t>{1, 2, 3})
                      .ok());
    }
  }
  EXPECT_THAT(std::string(writer->BeginGroup("a").message()), HasSubstr("begins twice"));
  SplitInfo split = *writer->Finish();

  ASSERT_EQ(split.groups.size(), 3u);
  EXPECT_EQ(split.groups[1].name, "b/en");
  EXPECT_EQ(split.groups[1].begin, 3);
  EXPECT_EQ(split.groups[1].end, 12);
  EXPECT_EQ(split.groups[1].documents, 2);
  EXPECT_EQ(split.groups[1].weight, 0.75);
  EXPECT_EQ(split.groups[2].begin, 12);
  EXPECT_EQ(split.groups[2].end, 12);
  EXPECT_EQ(split.groups[2].weight, 0);
}

TEST(Shards, AGroupAfterDocumentsOfNoneIsRefused) {
  TemporaryDirectory folder;
  auto writer = *ShardWriter::Create(folder.path(), "train", 260);
  ASSERT_TRUE(writer->AddDocument({1}).ok());
  EXPECT_FALSE(writer->BeginGroup("a").ok());
}

TEST(Shards, FindsTheDocumentOfEveryToken) {
  TemporaryDirectory folder;
  WriteDataset(folder.path(), 260, {{1, 2, 256}, {259}, {3, 256}});
  auto reader = *ShardReader::Open(folder.path(), "train");
  std::vector<int64_t> found;
  for (int64_t token = 0; token < 6; ++token) found.push_back(reader->Find(token));
  EXPECT_THAT(found, ElementsAre(0, 0, 0, 1, 2, 2));
}

TEST(CheckIndex, RefusesEveryHostileField) {
  std::string good = std::string("MMIDIDX\0\0", 9) + Bytes<uint64_t>({1}) + Bytes<uint8_t>({8}) +
                     Bytes<uint64_t>({2, 3}) + Bytes<int32_t>({3, 1}) + Bytes<int64_t>({0, 6}) +
                     Bytes<int64_t>({0, 1, 2});
  ASSERT_TRUE(CheckIndex(good).ok());
  auto refused = [&](size_t at, std::string bytes) {
    std::string bad = good;
    bad.replace(at, bytes.size(), bytes);
    return absl::IsDataLoss(CheckIndex(bad).status());
  };

  EXPECT_TRUE(refused(0, "X"));
  EXPECT_TRUE(refused(9, Bytes<uint64_t>({2})));
  EXPECT_TRUE(refused(17, Bytes<uint8_t>({5})));
  EXPECT_TRUE(refused(18, Bytes<uint64_t>({3})));
  EXPECT_TRUE(refused(18, Bytes<uint64_t>({~uint64_t{0}})));
  EXPECT_TRUE(refused(26, Bytes<uint64_t>({0})));
  // 12 * 2^63 + ... wraps to something small.
  EXPECT_TRUE(refused(18, Bytes<uint64_t>({uint64_t{1} << 63, 6})));
  EXPECT_TRUE(refused(34, Bytes<int32_t>({-1})));
  EXPECT_TRUE(refused(42, Bytes<int64_t>({2})));
  EXPECT_TRUE(refused(50, Bytes<int64_t>({-6})));
  EXPECT_TRUE(refused(58, Bytes<int64_t>({1})));
  EXPECT_TRUE(refused(66, Bytes<int64_t>({3})));
  EXPECT_TRUE(refused(74, Bytes<int64_t>({1})));
  EXPECT_TRUE(absl::IsDataLoss(CheckIndex("").status()));
  EXPECT_TRUE(absl::IsDataLoss(CheckIndex(good + "x").status()));
  EXPECT_EQ(CheckIndex(good + std::string("\0\1", 2))->continued, 1) << "two modes";
}

}  // namespace
}  // namespace llmctl::data
