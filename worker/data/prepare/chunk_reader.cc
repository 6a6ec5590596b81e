#include "worker/data/prepare/chunk_reader.h"

#include <utility>

#include "common/base/status.h"
#include "worker/data/read/file_system.h"

namespace llmctl::data {

absl::StatusOr<std::unique_ptr<Chunk>> ChunkReader::Next() {
  while (true) {
    if (reader_ != nullptr) {
      LLM_ASSIGN_OR_RETURN(std::unique_ptr<Chunk> chunk, reader_->Next());
      if (chunk != nullptr) return chunk;
    }
    if (next_file_ == static_cast<int>(files_.size())) return nullptr;
    const InputFile& file = files_[next_file_];
    LLM_ASSIGN_OR_RETURN(file_system_, FileSystemOf(file.path));
    LLM_ASSIGN_OR_RETURN(reader_, RecordReader::Open(*file_system_, file, {.file = next_file_}, settings_));
    ++next_file_;
  }
}

}  // namespace llmctl::data
