// Parquet files, written here by Arrow and read through the plug-in.
#include <string>
#include <vector>

#include <arrow/api.h>
#include <arrow/io/memory.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <parquet/arrow/writer.h>

#include "tests/unit/data/read/read_runs.h"

namespace llmctl::data {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

template <typename Builder, typename Value>
std::shared_ptr<arrow::Array> Column(const std::vector<Value>& values) {
  Builder builder;
  for (const Value& value : values) EXPECT_TRUE(builder.Append(value).ok());
  return *builder.Finish();
}

std::shared_ptr<arrow::Array> Strings(const std::vector<std::string>& values) {
  return Column<arrow::StringBuilder>(values);
}

std::shared_ptr<arrow::Array> Numbered(int rows) {
  std::vector<std::string> values;
  for (int i = 0; i < rows; ++i) values.push_back(absl::StrCat("text ", i, std::string(i % 50, 'x')));
  return Strings(values);
}

struct WriteOptions {
  int64_t group_rows = 1000;
  int64_t page_bytes = 1 << 20;
  bool dictionary = true;
};

std::string Written(const std::vector<std::string>& names, const std::vector<std::shared_ptr<arrow::Array>>& columns,
                    const WriteOptions& options = {}) {
  std::vector<std::shared_ptr<arrow::Field>> fields;
  for (size_t i = 0; i < names.size(); ++i) fields.push_back(arrow::field(names[i], columns[i]->type()));
  auto table = arrow::Table::Make(arrow::schema(fields), columns);
  auto sink = *arrow::io::BufferOutputStream::Create();
  parquet::WriterProperties::Builder properties;
  properties.compression(parquet::Compression::ZSTD)
      ->data_pagesize(options.page_bytes)
      ->write_batch_size(16)
      ->enable_page_checksum();
  if (!options.dictionary) properties.disable_dictionary();
  EXPECT_TRUE(parquet::arrow::WriteTable(*table, arrow::default_memory_pool(), sink, options.group_rows,
                                         properties.build())
                  .ok());
  return (*sink->Finish())->ToString();
}

class ParquetTest : public ReadRuns {};

TEST_F(ParquetTest, RowsAreDocumentsWithTheirPlace) {
  auto ids = Column<arrow::Int64Builder>(std::vector<int64_t>{7, -8, 9});

  Result read = Read("a.parquet", Written({"id", "text"}, {ids, Strings({"one", "two", " \n"})}));

  EXPECT_THAT(read.documents, ElementsAre("1:0 7=one", "2:1 -8=two"));
  EXPECT_THAT(read.rejects, ElementsAre("3:2 empty"));
  EXPECT_EQ(read.records, 3);
  EXPECT_EQ(read.lines, 3);
}

TEST_F(ParquetTest, TextMayBeOfAnyStringKind) {
  std::vector<std::string> words = {"a", "bb", "a"};
  auto dictionary = *arrow::DictionaryArray::FromArrays(
      arrow::dictionary(arrow::int32(), arrow::utf8()), Column<arrow::Int32Builder>(std::vector<int32_t>{0, 1, 0}),
      Strings({"a", "bb"}));
  for (const auto& column : {Strings(words), Column<arrow::LargeStringBuilder>(words),
                             Column<arrow::BinaryBuilder>(words), std::shared_ptr<arrow::Array>(dictionary)}) {
    for (bool encode : {true, false}) {
      Result read = Read("a.parquet", Written({"text"}, {column}, {.dictionary = encode}));
      EXPECT_THAT(read.documents, ElementsAre("1:0 a", "2:1 bb", "3:2 a")) << column->type()->ToString();
    }
  }
}

TEST_F(ParquetTest, NullsAndBadBytesAreRejectedOrRepaired) {
  arrow::BinaryBuilder builder;
  ASSERT_TRUE(builder.Append("one").ok() && builder.AppendNull().ok() && builder.Append("caf\xe9").ok());
  std::string file = Written({"text"}, {*builder.Finish()});

  Result read = Read("a.parquet", file);
  EXPECT_THAT(read.documents, ElementsAre("1:0 one", "3:2 caf\uFFFD"));
  EXPECT_THAT(read.rejects, ElementsAre("2:1 text_null"));
  EXPECT_EQ(read.repairs.invalid_utf8, 1);

  settings_.invalid_utf8 = InvalidUtf8Policy::kReject;
  EXPECT_THAT(Read("a.parquet", file).rejects, ElementsAre("2:1 text_null", "3:2 invalid_utf8"));
}

TEST_F(ParquetTest, ColumnsAreFoundByPath) {
  arrow::StringBuilder texts;
  ASSERT_TRUE(texts.Append("deep").ok() && texts.AppendNull().ok() && texts.Append("unseen").ok());
  auto valid = *arrow::AllocateEmptyBitmap(3);
  valid->mutable_data()[0] = 0b011;
  auto fields = arrow::StructArray::Make({*texts.Finish(), Strings({"i1", "i2", "i3"})},
                                         std::vector<std::string>{"te.xt", "id"}, valid);
  settings_.text_field = "meta.te\\.xt";
  settings_.id_field = "meta.id";

  Result read = Read("a.parquet", Written({"text", "meta"}, {Strings({"x", "y", "z"}), *fields}));

  EXPECT_THAT(read.documents, ElementsAre("1:0 i1=deep"));
  EXPECT_THAT(read.rejects, ElementsAre("2:1 text_null", "3:2 text_missing"));
}

TEST_F(ParquetTest, AColumnThatIsNotThereOrNoTextIsSaidOnceForEachRowGroup) {
  auto numbers = Column<arrow::Int64Builder>(std::vector<int64_t>{1, 2, 3});
  InputFile file = AddFile("a.parquet", Written({"text", "body"}, {numbers, Strings({"a", "b", "c"})}));

  EXPECT_THAT(Read(file).rejects, ElementsAre("1:0 text_not_a_string"));
  settings_.text_field = "content";
  Reject reject = ReadChunks(file)[0].last_rejects[0];
  EXPECT_EQ(reject.reason, Reason::kFieldMissing);
  EXPECT_EQ(reject.detail, "3 rows of row group 0: no such column; there are text, body");
  EXPECT_FALSE(IsDamage(reject.reason));
}

TEST_F(ParquetTest, ReadingGoesOnFromAnyChunkWhateverThePages) {
  settings_.chunk_bytes = 100;
  std::vector<std::string> expected;
  for (int64_t page_bytes : {64, 1 << 20}) {
    InputFile file = AddFile("a.parquet", Written({"text"}, {Numbered(500)},
                                                  {.group_rows = 130, .page_bytes = page_bytes, .dictionary = false}));
    std::vector<Chunk> chunks = ReadChunks(file);
    std::vector<Position> ends;
    for (const Chunk& chunk : chunks) ends.push_back(chunk.end);
    Result whole = Parse(std::move(chunks));
    if (expected.empty()) expected = whole.documents;
    EXPECT_THAT(whole.documents, ElementsAreArray(expected));
    EXPECT_EQ(whole.file_bytes, file.bytes);
    ASSERT_EQ(whole.documents.size(), 500u);
    for (const Position& end : ends) {
      size_t row = std::min<int64_t>(end.byte, 500);
      EXPECT_THAT(Read(file, {.position = end}).documents,
                  ElementsAreArray(std::vector<std::string>(expected.begin() + row, expected.end())));
    }
  }
}

TEST_F(ParquetTest, RangesAreOfRowGroups) {
  InputFile file = AddFile("a.parquet", Written({"text"}, {Numbered(500)}, {.group_rows = 60}));
  std::vector<InputRange> ranges = *CutInputs({file}, file.bytes / 5);
  ASSERT_GE(ranges.size(), 3u);

  int64_t rows = 0, file_bytes = 0;
  for (const InputRange& range : ranges) {
    EXPECT_EQ(range.begin, rows);
    Result read = Read(file, {.begin = range.begin, .end = range.end});
    EXPECT_THAT(read.documents[0], HasSubstr(absl::StrCat("1:", rows, " text ", rows)));
    rows += read.lines;
    file_bytes += read.file_bytes;
  }
  EXPECT_EQ(rows, 500);
  EXPECT_EQ(file_bytes, file.bytes);
}

TEST_F(ParquetTest, DamageCostsTheRestOfItsRowGroupOnly) {
  std::string bytes = Written({"text"}, {Numbered(300)}, {.group_rows = 100, .page_bytes = 256, .dictionary = false});
  // In the first row group, past its first pages.
  for (size_t at = bytes.size() / 8; at < bytes.size() / 8 + 16; ++at) bytes[at] ^= 0x55;

  Result read = Read("a.parquet", bytes);

  ASSERT_EQ(read.rejects.size(), 1u);
  EXPECT_THAT(read.rejects[0], HasSubstr("corrupt_file"));
  EXPECT_GT(read.documents.size(), 200u);
  EXPECT_LT(read.documents.size(), 300u);
  EXPECT_THAT(read.documents.back(), HasSubstr("300:299 text 299"));
}

TEST_F(ParquetTest, AFileThatIsCutOffOrNoneIsDamage) {
  std::string bytes = Written({"text"}, {Numbered(10)});
  for (const std::string& content : {bytes.substr(0, bytes.size() / 2), std::string("text"), std::string()}) {
    Result read = Read("a.parquet", content);
    EXPECT_THAT(read.documents, IsEmpty());
    EXPECT_THAT(read.rejects, ElementsAre("1:0 corrupt_file"));
  }
}

TEST_F(ParquetTest, IdsAreStringsOrIntegers) {
  auto text = Strings({"a"});
  auto ids = [&](const std::shared_ptr<arrow::Array>& column) {
    Result read = Read("a.parquet", Written({"text", "id"}, {text, column}));
    return read.documents[0] + (read.repairs.unusable_ids > 0 ? "!" : "");
  };
  EXPECT_EQ(ids(Strings({"x"})), "1:0 x=a");
  EXPECT_EQ(ids(Column<arrow::UInt64Builder>(std::vector<uint64_t>{~uint64_t{0}})), "1:0 18446744073709551615=a");
  EXPECT_EQ(ids(Column<arrow::UInt32Builder>(std::vector<uint32_t>{~uint32_t{0}})), "1:0 4294967295=a");
  EXPECT_EQ(ids(Column<arrow::Int16Builder>(std::vector<int16_t>{-3})), "1:0 -3=a");
  EXPECT_EQ(ids(Column<arrow::DoubleBuilder>(std::vector<double>{1.5})), "1:0 a!");
  EXPECT_EQ(Read("a.parquet", Written({"text"}, {text})).documents[0], "1:0 a");
}

}  // namespace
}  // namespace llmctl::data
