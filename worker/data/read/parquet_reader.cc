#include "worker/data/read/parquet_reader.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "common/base/status.h"
#include "worker/data/read/field_path.h"

namespace llmctl::data {
namespace {

constexpr int64_t kChunkRowsMax = 16384;

ParquetColumns ColumnsOf(const ReadSettings& settings) {
  ParquetColumns columns{SplitFieldPath(settings.text_field), {}};
  if (!settings.id_field.empty()) columns.id = SplitFieldPath(settings.id_field);
  return columns;
}

struct Opened {
  std::unique_ptr<RandomAccessFile> source;
  std::unique_ptr<ParquetFile> file;  // null: it is none
  ParquetFault fault;
};

absl::StatusOr<Opened> OpenParquet(const FileSystem& files, const InputFile& file) {
  LLM_ASSIGN_OR_RETURN(OpenParquetFunction* open, LoadParquetPlugin());
  Opened out;
  LLM_ASSIGN_OR_RETURN(out.source, files.OpenRandomAccess(file.path));
  out.file.reset(open(*out.source, out.fault));
  return out;
}

}  // namespace

ParquetReader::ParquetReader(const InputFile& file, const ReadFrom& from, const ReadSettings& settings)
    : input_(file), from_(from), settings_(settings), columns_(ColumnsOf(settings)) {}

absl::StatusOr<std::unique_ptr<RecordReader>> ParquetReader::Open(const FileSystem& files, const InputFile& file,
                                                                  const ReadFrom& from, const ReadSettings& settings) {
  std::unique_ptr<ParquetReader> reader(new ParquetReader(file, from, settings));
  LLM_RETURN_IF_ERROR(reader->Start(files));
  return reader;
}

absl::Status ParquetReader::Start(const FileSystem& files) {
  LLM_ASSIGN_OR_RETURN(Opened opened, OpenParquet(files, input_));
  source_ = std::move(opened.source);
  file_ = std::move(opened.file);
  fault_ = std::move(opened.fault);
  row_ = std::max(from_.begin, from_.position.byte);
  if (file_ == nullptr) {
    // Said by whoever reads the first row.
    done_ = row_ > 0;
    return absl::OkStatus();
  }
  for (const ParquetRowGroup& group : file_->row_groups()) rows_ += group.rows;
  end_ = std::min(from_.end, rows_);
  done_ = row_ >= end_;
  group_ = -1;
  FindGroup();
  return absl::OkStatus();
}

// Goes on to the row group that the next row lies in.
void ParquetReader::FindGroup() {
  while (row_ >= group_end_ && row_ < rows_) {
    ++group_;
    group_end_ += file_->row_groups()[group_].rows;
    group_open_ = false;
  }
}

absl::StatusOr<std::unique_ptr<Chunk>> ParquetReader::Next() {
  if (done_) return nullptr;
  auto chunk = std::make_unique<Chunk>();
  chunk->file = from_.file;
  chunk->format = InputFormat::kParquet;
  chunk->place = place();
  chunk->start = {.byte = row_, .line = place().line};
  int64_t file_bytes = FileBytesBefore(row_);
  if (file_ == nullptr) {
    chunk->last_rejects.push_back({place(), fault_.reason, fault_.detail});
    done_ = true;
  } else {
    LLM_RETURN_IF_ERROR(ReadRows(*chunk));
    done_ = row_ >= end_;
  }
  chunk->file_bytes = FileBytesBefore(file_ == nullptr ? 1 : row_) - file_bytes;
  chunk->end = {.byte = done_ ? kFileEnd : row_, .line = place().line};
  return chunk;
}

absl::Status ParquetReader::ReadRows(Chunk& chunk) {
  FindGroup();
  chunk.rows = std::make_unique<RowBatch>();
  ParquetFault fault;
  if (!group_open_) {
    int64_t skipped = row_ - (group_end_ - file_->row_groups()[group_].rows);
    if (!file_->OpenRowGroup(group_, skipped, columns_, fault)) return RejectGroup(fault, chunk);
    group_open_ = true;
  }
  int64_t bytes = 0, last = std::min({group_end_, end_, row_ + kChunkRowsMax});
  while (row_ < last && bytes < settings_.chunk_bytes) {
    if (!file_->ReadRow(*chunk.rows, fault)) return RejectGroup(fault, chunk);
    bytes += chunk.rows->rows.back().text.size();
    ++row_;
  }
  if (file_->id_is_unusable()) chunk.repairs.unusable_ids = chunk.rows->rows.size();
  return absl::OkStatus();
}

// What is left of a row group that cannot be read further.
absl::Status ParquetReader::RejectGroup(const ParquetFault& fault, Chunk& chunk) {
  if (absl::Status status = file_->read_status(); !status.ok()) return Annotate(status, "read ", input_.path);
  int64_t rows = std::min(group_end_, end_) - row_;
  chunk.last_rejects.push_back(
      {place(), fault.reason, absl::StrCat(rows, " rows of row group ", group_, ": ", fault.detail)});
  row_ += rows;
  return absl::OkStatus();
}

int64_t ParquetReader::FileBytesBefore(int64_t row) const {
  if (rows_ == 0 || row >= rows_) return row > 0 ? input_.bytes : 0;
  return static_cast<int64_t>(static_cast<double>(input_.bytes) * static_cast<double>(row) /
                              static_cast<double>(rows_));
}

absl::StatusOr<std::vector<ParquetRowGroup>> ParquetRowGroups(const FileSystem& files, const InputFile& file) {
  LLM_ASSIGN_OR_RETURN(Opened opened, OpenParquet(files, file));
  if (opened.file == nullptr) return std::vector<ParquetRowGroup>();
  return opened.file->row_groups();
}

}  // namespace llmctl::data
