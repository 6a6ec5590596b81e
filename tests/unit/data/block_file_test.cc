#include "worker/data/pipeline/block_file.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/file.h"
#include "common/base/status.h"
#include "tests/unit/temporary_directory.h"
#include "worker/data/pipeline/document_record.h"
#include "worker/data/pipeline/tally.h"
#include "worker/data/spill/record_file.h"

namespace llmctl::data {
namespace {

class BlockFiles : public ::testing::Test {
 protected:
  uint64_t Write(const std::string& name, const std::vector<std::string>& records, const std::string& footer = "end") {
    auto writer = BlockFileWriter::Create(files, folder / name, DigestOf("test"));
    EXPECT_TRUE(writer.ok()) << writer.status();
    for (const std::string& record : records) EXPECT_TRUE((*writer)->Append(record).ok());
    return *(*writer)->Commit(footer);
  }

  absl::StatusOr<std::vector<std::string>> Read(const std::string& name) {
    LLM_ASSIGN_OR_RETURN(std::unique_ptr<BlockFileReader> reader,
                         BlockFileReader::Open(files, folder / name, DigestOf("test")));
    std::vector<std::string> out;
    absl::string_view record;
    while (true) {
      LLM_ASSIGN_OR_RETURN(bool more, reader->Next(record));
      if (!more) return out;
      out.emplace_back(record);
    }
  }

  TemporaryDirectory folder;
  LocalSpillFiles files{LocalSpillFiles::Durability::kRename};
};

TEST_F(BlockFiles, GiveBackWhatWasWritten) {
  // More than one block, a record larger than a block, an empty one.
  std::vector<std::string> records;
  for (int i = 0; i < 3000; ++i) records.push_back(std::string(i % 1500, 'a' + i % 26));
  records.push_back(std::string(3 << 20, 'x'));
  records.push_back("");

  uint64_t identity = Write("a", records);

  EXPECT_EQ(*Read("a"), records);
  EXPECT_EQ(Write("b", records), identity);
  records.back() = "other";
  EXPECT_NE(Write("c", records), identity);
  EXPECT_NE(Write("d", {}, "end"), Write("e", {}, "other end"));
}

TEST_F(BlockFiles, NoDamageIsHandedOut) {
  Write("a", {"one record", "another record", std::string(200, 'z')});
  std::string whole = *ReadFile(folder / "a");
  for (size_t at = 0; at < whole.size(); ++at) {
    std::string damaged = whole;
    damaged[at] ^= 0x20;
    ASSERT_TRUE(ReplaceFile(folder / "b", damaged).ok());
    absl::StatusOr<std::vector<std::string>> read = Read("b");
    // The number of records and the identity stand in the tail, which nothing but its place protects.
    bool in_numbers = at >= whole.size() - 24 && at < whole.size() - 8;
    EXPECT_TRUE(!read.ok() || in_numbers) << "a flipped bit in byte " << at << " is not noticed";
    ASSERT_TRUE(ReplaceFile(folder / "b", whole.substr(0, at)).ok());
    EXPECT_FALSE(Read("b").ok()) << "cut at " << at;
  }
}

TEST_F(BlockFiles, MadeFromSomethingElseIsNoDamage) {
  Write("a", {"x"});

  EXPECT_TRUE(absl::IsFailedPrecondition(BlockFileReader::Open(files, folder / "a", DigestOf("other")).status()));
  EXPECT_TRUE(absl::IsNotFound(BlockFileReader::Open(files, folder / "none", DigestOf("test")).status()));
}

TEST(DocumentRecord, IsGivenBackAndRefusedWhenCut) {
  std::string bytes;
  EncodeDocument({.place = {.file = 3, .line = 70000, .byte = 1 << 30},
                  .id = "doc",
                  .language = "zh-Hant",
                  .perplexity = 17.5,
                  .text = "text"},
                 bytes);
  DocumentRecord document;

  ASSERT_TRUE(DecodeDocument(bytes, document).ok());
  EXPECT_EQ(document.place.line, 70000);
  EXPECT_EQ(document.perplexity, 17.5);
  EXPECT_EQ(document.text, "text");
  for (size_t cut = 0; cut < bytes.size(); ++cut) {
    EXPECT_FALSE(DecodeDocument(absl::string_view(bytes).substr(0, cut), document).ok()) << cut;
  }
  EXPECT_FALSE(DecodeDocument(bytes + "x", document).ok());
}

TEST(Tally, AddsUpToTheSameWhateverThePieces) {
  Tally whole, first, second;
  for (int i = 0; i < 100; ++i) {
    for (Tally* tally : {&whole, i % 3 == 0 ? &first : &second}) {
      Tally::Group& group = tally->GroupOf("web", i % 2 ? "en" : "de");
      group.read.Add(i);
      group.read_bytes.Add(i);
      group.dropped["reason"].Add(i);
      tally->Add("counter", i);
      uint64_t key = static_cast<uint64_t>(i) * 0x9E3779B97F4A7C15;
      if (tally->WantsSample("reason", key)) tally->AddSample("reason", {.key = key, .place = std::to_string(i)});
    }
  }
  second.Merge(first);
  std::string merged, direct;
  second.Encode(merged);
  whole.Encode(direct);

  EXPECT_EQ(merged, direct);
  EXPECT_EQ(whole.samples().at("reason").size(), Tally::kSamples);
  Tally read;
  WireReader wire(direct);
  ASSERT_TRUE(read.Decode(wire).ok());
  std::string again;
  read.Encode(again);
  EXPECT_EQ(again, direct);
}

}  // namespace
}  // namespace llmctl::data
