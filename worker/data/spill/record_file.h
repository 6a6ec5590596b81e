// Files of fixed-size records in sections: what tasks hand to each other.
//
//   header   64 bytes: magic, version, kind, record size, digest of what it was made from, checksum of these
//   records  section after section
//   footer   records and checksum of each section, notes, number of sections and records, checksum, magic
//
// All little-endian. Nothing in them is trusted before it is checked: a file that was cut, damaged, or made from other
// settings or other input is refused with the path and what to do. A section's checksum is known to hold once it has
// been read to its end; records that are read singly carry a checksum of their own.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "worker/data/spill/spill_files.h"

namespace llmctl::data {

enum class RecordKind : uint32_t {
  kPart = 1,          // the files of a finished part
  kBandKeys = 2,      // (band key, document), a section per band
  kTextKeys = 3,      // (128-bit key, document, unit), a section per range of keys
  kSketches = 4,      // what estimates of similarity are made from
  kShingleSets = 5,   // shingle hashes, document after document
  kShingleStarts = 6, // where a document's begin
  kPairs = 7,         // (later document, earlier document)
  kDuplicates = 8,    // the result of near deduplication
  kRepeats = 9,       // the result of exact deduplication
  kNgrams = 10,       // counts, probabilities and weights of n-grams
};

using RecordNotes = std::array<uint64_t, 8>;

struct RecordFileType {
  RecordKind kind;
  uint32_t record_bytes;
  std::string digest;  // 32 characters; DigestOf
};

// A digest for RecordFileType: of a text that says what the file was made from.
std::string DigestOf(absl::string_view text);

class RecordFileWriter {
 public:
  static absl::StatusOr<RecordFileWriter> Create(SpillFiles& files, const std::string& path,
                                                 const RecordFileType& type);
  RecordFileWriter(RecordFileWriter&&) noexcept;
  RecordFileWriter& operator=(RecordFileWriter&&) noexcept;
  ~RecordFileWriter();

  // A whole number of records, to the current section; the first one is there from the start.
  absl::Status Append(const void* records, size_t count);
  void NextSection();
  // Of what identifies the file: header, footer and thereby all records.
  absl::StatusOr<uint64_t> Commit(const RecordNotes& notes);

 private:
  struct Section;
  explicit RecordFileWriter(uint32_t record_bytes);

  uint32_t record_bytes_;
  std::string header_;
  std::unique_ptr<SpillWriter> out_;
  std::string buffer_;
  std::vector<std::unique_ptr<Section>> sections_;
};

class RecordFile {
 public:
  struct Section {
    uint64_t first = 0;  // record
    uint64_t records = 0;
    uint64_t checksum = 0;
  };

  // Checks header, footer and size against `type`.
  static absl::StatusOr<RecordFile> Open(SpillFiles& files, const std::string& path, const RecordFileType& type);

  const std::string& path() const { return path_; }
  const std::vector<Section>& sections() const { return sections_; }
  uint64_t records() const { return records_; }
  uint32_t record_bytes() const { return record_bytes_; }
  const RecordNotes& notes() const { return notes_; }
  // What Commit returned.
  uint64_t identity() const { return identity_; }

  // Records [first, first + count), whose checksums are the caller's matter.
  absl::Status Read(uint64_t first, uint64_t count, void* out) const;
  // DataLoss: `what` is wrong with it.
  absl::Status Damaged(absl::string_view what) const;

 private:
  RecordFile() = default;
  absl::Status ReadHeader(const RecordFileType& type, std::string& header);
  absl::Status ReadFooter(const std::string& header);

  std::string path_;
  uint32_t record_bytes_ = 0;
  std::unique_ptr<SpillReader> in_;
  std::vector<Section> sections_;
  uint64_t records_ = 0;
  RecordNotes notes_{};
  uint64_t identity_ = 0;
};

class SectionChecksum;

// A section from its first record to its last, in pieces, its checksum tested at the end.
class SectionReader {
 public:
  SectionReader(const RecordFile& file, size_t section);
  SectionReader(SectionReader&&) noexcept;
  ~SectionReader();

  // At most `count` records; fewer only at the end, 0 at the end. DataLoss when all have been read and the checksum
  // does not hold.
  absl::StatusOr<uint64_t> Read(void* out, uint64_t count);

 private:
  const RecordFile& file_;
  RecordFile::Section section_;
  uint64_t at_ = 0;
  std::unique_ptr<SectionChecksum> checksum_;
};

}  // namespace llmctl::data
