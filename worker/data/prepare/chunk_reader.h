// The chunks of a list of files, one file after the other.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"

#include "worker/data/read/record_reader.h"

namespace llmctl::data {

class ChunkReader {
 public:
  ChunkReader(const std::vector<InputFile>& files, const ReadSettings& settings)
      : files_(files), settings_(settings) {}

  // The next chunk in input order; null at the end. An error of the file system ends the reading.
  absl::StatusOr<std::unique_ptr<Chunk>> Next();

 private:
  const std::vector<InputFile>& files_;
  const ReadSettings settings_;
  int next_file_ = 0;
  std::unique_ptr<FileSystem> file_system_;
  std::unique_ptr<RecordReader> reader_;
};

}  // namespace llmctl::data
