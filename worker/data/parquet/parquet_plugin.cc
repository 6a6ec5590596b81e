// libllm_parquet.so: Parquet files by Arrow's reader, page by page (worker/data/read/parquet_file.h).
//
// The columns are read by Parquet's own interface rather than as Arrow arrays: memory is then that of a page, not of a
// row group, and strings of more than 2 GB in all are no special case.
#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include <arrow/buffer.h>
#include <arrow/io/interfaces.h>
#include <arrow/result.h>
#include <parquet/column_reader.h>
#include <parquet/exception.h>
#include <parquet/file_reader.h>
#include <parquet/metadata.h>
#include <parquet/properties.h>
#include <parquet/schema.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "worker/data/read/parquet_file.h"

namespace llmctl::data {
namespace {

constexpr int64_t kStreamBytes = int64_t{256} << 10;
constexpr int64_t kLevels = 128;  // values decoded ahead

// Arrow's view of a file of ours.
class Source : public arrow::io::RandomAccessFile {
 public:
  explicit Source(const data::RandomAccessFile& file) : file_(file) {}

  arrow::Result<int64_t> GetSize() override { return file_.bytes(); }
  arrow::Result<int64_t> Tell() const override { return position_; }
  arrow::Status Seek(int64_t position) override {
    position_ = position;
    return arrow::Status::OK();
  }
  arrow::Status Close() override {
    closed_ = true;
    return arrow::Status::OK();
  }
  bool closed() const override { return closed_; }

  arrow::Result<int64_t> ReadAt(int64_t position, int64_t bytes, void* out) override {
    if (position < 0 || bytes < 0) return arrow::Status::Invalid("an offset in the file is negative");
    absl::StatusOr<size_t> given = file_.ReadAt(position, static_cast<char*>(out), bytes);
    if (given.ok()) return static_cast<int64_t>(*given);
    status_ = given.status();
    return arrow::Status::IOError("the file cannot be read");
  }
  arrow::Result<std::shared_ptr<arrow::Buffer>> ReadAt(int64_t position, int64_t bytes) override {
    // A damaged file may ask for more than there is.
    if (position < 0 || bytes < 0 || position > file_.bytes()) return arrow::Status::Invalid("beyond the file");
    bytes = std::min(bytes, file_.bytes() - position);
    ARROW_ASSIGN_OR_RAISE(std::shared_ptr<arrow::ResizableBuffer> buffer, arrow::AllocateResizableBuffer(bytes));
    ARROW_ASSIGN_OR_RAISE(int64_t given, ReadAt(position, bytes, buffer->mutable_data()));
    ARROW_RETURN_NOT_OK(buffer->Resize(given));
    return buffer;
  }
  arrow::Result<int64_t> Read(int64_t bytes, void* out) override {
    ARROW_ASSIGN_OR_RAISE(int64_t given, ReadAt(position_, bytes, out));
    position_ += given;
    return given;
  }
  arrow::Result<std::shared_ptr<arrow::Buffer>> Read(int64_t bytes) override {
    ARROW_ASSIGN_OR_RAISE(std::shared_ptr<arrow::Buffer> buffer, ReadAt(position_, bytes));
    position_ += buffer->size();
    return buffer;
  }

  const absl::Status& status() const { return status_; }

 private:
  const data::RandomAccessFile& file_;
  int64_t position_ = 0;
  bool closed_ = false;
  absl::Status status_;
};

// The values of one column of a row group, one at a time.
class Values {
 public:
  virtual ~Values() = default;
  // What is wrong with the column, or null. Null and missing values are told apart by how deep the definition goes.
  virtual const char* Next(StringArena& arena, RowBatch::Kind& kind, absl::string_view& text) = 0;
  virtual const char* Skip(int64_t rows) = 0;
};

constexpr const char* kTooFewRows = "a column has fewer rows than its row group";

absl::string_view CopyValue(const parquet::ByteArray& value, StringArena& arena) {
  return arena.Copy({reinterpret_cast<const char*>(value.ptr), value.len});
}
template <typename Integer>
absl::string_view CopyValue(Integer value, StringArena& arena) {
  return arena.Copy(absl::StrCat(value));
}

template <typename Type, typename Shown = typename Type::c_type>
class TypedValues : public Values {
 public:
  TypedValues(std::shared_ptr<parquet::ColumnReader> reader, const parquet::ColumnDescriptor& column)
      : reader_(std::static_pointer_cast<parquet::TypedColumnReader<Type>>(std::move(reader))),
        defined_(column.max_definition_level()),
        leaf_is_optional_(column.schema_node()->is_optional()) {}

  const char* Next(StringArena& arena, RowBatch::Kind& kind, absl::string_view& text) override {
    if (level_ == levels_) {
      if (const char* fault = Decode()) return fault;
    }
    // A required column has no levels.
    int16_t level = defined_ == 0 ? 0 : definitions_[level_];
    ++level_;
    kind = leaf_is_optional_ && level == defined_ - 1 ? RowBatch::Kind::kNull : RowBatch::Kind::kMissingParent;
    if (level != defined_) return nullptr;
    kind = RowBatch::Kind::kString;
    text = CopyValue(static_cast<Shown>(values_[value_++]), arena);
    return nullptr;
  }

  const char* Skip(int64_t rows) override {
    return rows > 0 && reader_->Skip(rows) != rows ? kTooFewRows : nullptr;
  }

 private:
  const char* Decode() {
    int64_t values = 0;
    levels_ = reader_->HasNext() ? reader_->ReadBatch(kLevels, definitions_, nullptr, values_, &values) : 0;
    level_ = 0;
    value_ = 0;
    if (levels_ == 0) return kTooFewRows;
    int64_t present = defined_ == 0 ? levels_ : std::count(definitions_, definitions_ + levels_, defined_);
    return values == present ? nullptr : "a page has not as many values as it says";
  }

  const std::shared_ptr<parquet::TypedColumnReader<Type>> reader_;
  const int16_t defined_;
  const bool leaf_is_optional_;
  int16_t definitions_[kLevels];
  typename Type::c_type values_[kLevels];
  int64_t levels_ = 0;
  int64_t level_ = 0;
  int64_t value_ = 0;
};

std::unique_ptr<Values> TextValues(std::shared_ptr<parquet::ColumnReader> reader,
                                   const parquet::ColumnDescriptor& column) {
  if (column.physical_type() != parquet::Type::BYTE_ARRAY || column.max_repetition_level() > 0) return nullptr;
  return std::make_unique<TypedValues<parquet::ByteArrayType>>(std::move(reader), column);
}

std::unique_ptr<Values> IdValues(std::shared_ptr<parquet::ColumnReader> reader,
                                 const parquet::ColumnDescriptor& column) {
  if (column.max_repetition_level() > 0) return nullptr;
  const auto& type = column.logical_type();
  bool is_unsigned = type->is_int() && !static_cast<const parquet::IntLogicalType&>(*type).is_signed();
  bool is_integer = type->is_int() || type->is_none() || !type->is_valid();
  switch (column.physical_type()) {
    case parquet::Type::BYTE_ARRAY: return TextValues(std::move(reader), column);
    case parquet::Type::INT32:
      if (!is_integer) return nullptr;
      if (is_unsigned) return std::make_unique<TypedValues<parquet::Int32Type, uint32_t>>(std::move(reader), column);
      return std::make_unique<TypedValues<parquet::Int32Type>>(std::move(reader), column);
    case parquet::Type::INT64:
      if (!is_integer) return nullptr;
      if (is_unsigned) return std::make_unique<TypedValues<parquet::Int64Type, uint64_t>>(std::move(reader), column);
      return std::make_unique<TypedValues<parquet::Int64Type>>(std::move(reader), column);
    default: return nullptr;
  }
}

class File : public ParquetFile {
 public:
  static std::unique_ptr<ParquetFile> Make(const data::RandomAccessFile& file, ParquetFault& fault) {
    std::unique_ptr<File> out(new File(file));
    bool opened = out->Guard(fault, [&] {
      const char* wrong = out->Open();
      return wrong == nullptr || Damaged(wrong, fault);
    });
    return opened ? std::move(out) : nullptr;
  }

  const std::vector<ParquetRowGroup>& row_groups() const override { return groups_; }
  bool id_is_unusable() const override { return id_is_unusable_; }
  absl::Status read_status() const override { return source_->status(); }

  bool OpenRowGroup(int group, int64_t skipped, const ParquetColumns& columns, ParquetFault& fault) override {
    return Guard(fault, [&] {
      text_ = nullptr;
      id_ = nullptr;
      std::optional<int> text = FindColumn(columns.text);
      if (!text) return Refuse(Reason::kFieldMissing, absl::StrCat("no such column; there are ", Columns()), fault);
      std::shared_ptr<parquet::RowGroupReader> reader = reader_->RowGroup(group);
      const parquet::SchemaDescriptor& schema = *reader_->metadata()->schema();
      text_ = TextValues(reader->Column(*text), *schema.Column(*text));
      if (text_ == nullptr) {
        return Refuse(Reason::kFieldNotAString,
                      absl::StrCat("the column is ", schema.Column(*text)->schema_node()->logical_type()->ToString(),
                                   " of ", parquet::TypeToString(schema.Column(*text)->physical_type())),
                      fault);
      }
      const char* wrong = text_->Skip(skipped);
      std::optional<int> id = columns.id.empty() ? std::nullopt : FindColumn(columns.id);
      if (id) id_ = IdValues(reader->Column(*id), *schema.Column(*id));
      id_is_unusable_ = id.has_value() && id_ == nullptr;
      if (id_ != nullptr && wrong == nullptr) wrong = id_->Skip(skipped);
      return wrong == nullptr || Damaged(wrong, fault);
    });
  }

  bool ReadRow(RowBatch& batch, ParquetFault& fault) override {
    return Guard(fault, [&] {
      RowBatch::Row row;
      RowBatch::Kind id_kind;
      const char* wrong = text_->Next(batch.arena, row.kind, row.text);
      if (id_ != nullptr && wrong == nullptr) wrong = id_->Next(batch.arena, id_kind, row.id);
      if (wrong != nullptr) return Damaged(wrong, fault);
      batch.rows.push_back(row);
      return true;
    });
  }

 private:
  explicit File(const data::RandomAccessFile& file) : source_(std::make_shared<Source>(file)) {}

  // Throws what Parquet's interface does; otherwise says what is wrong, or null.
  const char* Open() {
    parquet::ReaderProperties properties = parquet::default_reader_properties();
    // By pages, rather than a row group's column at once.
    properties.enable_buffered_stream();
    properties.set_buffer_size(kStreamBytes);
    properties.set_page_checksum_verification(true);
    reader_ = parquet::ParquetFileReader::Open(source_, properties);
    const parquet::FileMetaData& metadata = *reader_->metadata();
    for (int i = 0; i < metadata.num_row_groups(); ++i) {
      std::unique_ptr<parquet::RowGroupMetaData> group = metadata.RowGroup(i);
      if (group->num_rows() < 0) return "a row group has less than no rows";
      groups_.push_back({group->num_rows(), group->total_compressed_size()});
    }
    return nullptr;
  }

  // Parquet's interface reports by exceptions, which end here.
  template <typename Function>
  bool Guard(ParquetFault& fault, const Function& function) {
    try {
      return function();
    } catch (const std::exception& error) {
      return Damaged(error.what(), fault);
    }
  }

  static bool Damaged(const char* what, ParquetFault& fault) {
    return Refuse(Reason::kCorruptFile, absl::StrCat("parquet: ", what), fault);
  }

  static bool Refuse(Reason reason, std::string detail, ParquetFault& fault) {
    fault = {reason, std::move(detail)};
    return false;
  }

  std::optional<int> FindColumn(const std::vector<std::string>& path) const {
    const parquet::SchemaDescriptor& schema = *reader_->metadata()->schema();
    for (int i = 0; i < schema.num_columns(); ++i) {
      if (schema.Column(i)->path()->ToDotVector() == path) return i;
    }
    return std::nullopt;
  }

  std::string Columns() const {
    const parquet::SchemaDescriptor& schema = *reader_->metadata()->schema();
    std::vector<std::string> names;
    for (int i = 0; i < std::min(schema.num_columns(), 20); ++i) {
      names.push_back(schema.Column(i)->path()->ToDotString());
    }
    return absl::StrJoin(names, ", ");
  }

  const std::shared_ptr<Source> source_;
  std::unique_ptr<parquet::ParquetFileReader> reader_;
  std::vector<ParquetRowGroup> groups_;
  std::unique_ptr<Values> text_;
  std::unique_ptr<Values> id_;
  bool id_is_unusable_ = false;
};

}  // namespace
}  // namespace llmctl::data

extern "C" llmctl::data::ParquetFile* llm_open_parquet(const llmctl::data::RandomAccessFile& file,
                                                       llmctl::data::ParquetFault& fault) {
  return llmctl::data::File::Make(file, fault).release();
}
