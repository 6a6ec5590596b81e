// Files of records that tasks hand to each other: written front to back in one piece, read front to back.
//
//   header  magic, what it was made from (32 characters)
//   blocks  u32 bytes, u32 stored bytes, u64 checksum of these; then a zstd frame of records: varint length, bytes
//   footer  u32 0, u32 bytes, u64 checksum; text
//   tail    u64 offset of the footer, u64 records, u64 identity, magic
//
// A file is there as a whole or not at all, and nothing of one that was cut or damaged is handed out. The identity is a
// checksum over the checksums: equal files have equal ones.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "worker/data/spill/spill_files.h"

namespace llmctl::data {

// Memory: two blocks of 1 MiB, or of the largest record.
class BlockFileWriter {
 public:
  // `digest`: DigestOf() of whatever the content follows from.
  static absl::StatusOr<std::unique_ptr<BlockFileWriter>> Create(SpillFiles& files, const std::string& path,
                                                                 const std::string& digest);
  ~BlockFileWriter();
  BlockFileWriter(const BlockFileWriter&) = delete;
  BlockFileWriter& operator=(const BlockFileWriter&) = delete;

  absl::Status Append(absl::string_view record);
  uint64_t records() const { return records_; }
  // On disk and under its name when it returns the identity.
  absl::StatusOr<uint64_t> Commit(absl::string_view footer);

 private:
  BlockFileWriter(std::unique_ptr<SpillWriter> out, const std::string& digest);
  absl::Status Flush();
  absl::Status Put(absl::string_view bytes);

  std::unique_ptr<SpillWriter> out_;
  std::string block_;
  std::string stored_;
  uint64_t offset_ = 0;
  uint64_t records_ = 0;
  uint64_t identity_ = 0;
};

// Memory: two blocks.
class BlockFileReader {
 public:
  // NotFound if there is none; DataLoss if it is damaged, FailedPrecondition if it was made from something else.
  static absl::StatusOr<std::unique_ptr<BlockFileReader>> Open(SpillFiles& files, const std::string& path,
                                                               const std::string& digest);

  const std::string& footer() const { return footer_; }
  uint64_t records() const { return records_; }
  uint64_t identity() const { return identity_; }

  // The next record, valid until the call after; false at the end.
  absl::StatusOr<bool> Next(absl::string_view& record);

 private:
  BlockFileReader() = default;
  absl::Status ReadTail(const std::string& digest);
  absl::Status ReadBlock();
  absl::Status Damaged(absl::string_view what) const;

  std::string path_;
  std::unique_ptr<SpillReader> in_;
  std::string footer_;
  uint64_t records_ = 0;
  uint64_t identity_ = 0;
  uint64_t footer_offset_ = 0;
  uint64_t offset_ = 0;  // of the next block
  std::string stored_;
  std::string block_;
  size_t at_ = 0;  // in block_
};

}  // namespace llmctl::data
