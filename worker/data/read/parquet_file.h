// The rows of a Parquet file, as the plug-in gives them.
//
// Arrow's libraries are large: a program that links them starts some 40 ms later. So they are linked by the plug-in
// libllm_parquet.so, which lies beside the program and is loaded when the first Parquet file is opened. What crosses
// its border is this interface; its errors are text, and damage in the file is told apart from errors of reading it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "worker/data/read/file_system.h"
#include "worker/data/read/record.h"

namespace llmctl::data {

struct ParquetColumns {
  std::vector<std::string> text;  // the names on the way to it
  std::vector<std::string> id;    // empty: none
};

struct ParquetRowGroup {
  int64_t rows = 0;
  int64_t bytes = 0;  // compressed, of all columns
};

struct ParquetFault {
  Reason reason = Reason::kCorruptFile;
  std::string detail;
};

class ParquetFile {
 public:
  virtual ~ParquetFile() = default;
  virtual const std::vector<ParquetRowGroup>& row_groups() const = 0;
  // From here on, rows of this group are read, without its first `skipped`. False, with the fault, if the columns
  // are not there or not of the kind they must be, or if the file is damaged.
  virtual bool OpenRowGroup(int group, int64_t skipped, const ParquetColumns& columns, ParquetFault& fault) = 0;
  // Whether there is an id column that is of no use as one.
  virtual bool id_is_unusable() const = 0;
  // Appends the next row of the group. False, with the fault, if it cannot be read.
  virtual bool ReadRow(RowBatch& batch, ParquetFault& fault) = 0;
  // What the file system said when a read failed; OK if it is the file that is at fault.
  virtual absl::Status read_status() const = 0;
};

// Null, with the fault, if the bytes are no Parquet file. `file` must outlive it.
using OpenParquetFunction = ParquetFile*(const RandomAccessFile& file, ParquetFault& fault);
inline constexpr char kOpenParquetSymbol[] = "llm_open_parquet";

// Of the plug-in, which is loaded at the first call. Unavailable when it is not there.
absl::StatusOr<OpenParquetFunction*> LoadParquetPlugin();

}  // namespace llmctl::data
