// Reads the rows of a Parquet file (record_reader.h). A chunk ends with the row that fills it, with a row group or
// with kChunkRowsMax rows, so that pages, however large, change nothing.
#pragma once

#include <memory>

#include "absl/status/statusor.h"

#include "worker/data/read/file_system.h"
#include "worker/data/read/parquet_file.h"
#include "worker/data/read/record_reader.h"

namespace llmctl::data {

class ParquetReader : public RecordReader {
 public:
  static absl::StatusOr<std::unique_ptr<RecordReader>> Open(const FileSystem& files, const InputFile& file,
                                                            const ReadFrom& from, const ReadSettings& settings);

  absl::StatusOr<std::unique_ptr<Chunk>> Next() override;

 private:
  ParquetReader(const InputFile& file, const ReadFrom& from, const ReadSettings& settings);
  absl::Status Start(const FileSystem& files);
  void FindGroup();
  absl::Status ReadRows(Chunk& chunk);
  absl::Status RejectGroup(const ParquetFault& fault, Chunk& chunk);
  int64_t FileBytesBefore(int64_t row) const;
  Place place() const { return {from_.file, row_ - from_.begin + 1, row_}; }

  const InputFile input_;
  const ReadFrom from_;
  const ReadSettings settings_;
  const ParquetColumns columns_;
  std::unique_ptr<RandomAccessFile> source_;
  std::unique_ptr<ParquetFile> file_;
  ParquetFault fault_;     // of a file that is none
  int64_t row_ = 0;        // next
  int64_t rows_ = 0;       // in the file
  int64_t end_ = 0;        // of the range
  int group_ = 0;          // that row_ lies in
  int64_t group_end_ = 0;  // its last row plus one
  bool group_open_ = false;
  bool done_ = false;
};

// How many rows, and bytes, each of the groups of a file has.
absl::StatusOr<std::vector<ParquetRowGroup>> ParquetRowGroups(const FileSystem& files, const InputFile& file);

}  // namespace llmctl::data
