#include "tests/fuzz/dedup_targets.h"

#include <cstring>
#include <memory>
#include <string>

#include "common/base/check.h"
#include "worker/data/dedup/fold_table.h"
#include "worker/data/dedup/word_hasher.h"
#include "worker/data/spill/record_file.h"

namespace llmctl::fuzz {
namespace {

// One file, in memory.
class MemoryFiles : public data::SpillFiles {
 public:
  explicit MemoryFiles(std::string bytes) : bytes_(std::move(bytes)) {}
  const std::string& bytes() const { return bytes_; }

  absl::StatusOr<std::unique_ptr<data::SpillWriter>> Create(const std::string&) override {
    bytes_.clear();
    return std::make_unique<Writer>(bytes_);
  }
  absl::StatusOr<std::unique_ptr<data::SpillReader>> Open(const std::string&) override {
    return std::make_unique<Reader>(bytes_);
  }
  absl::Status RemoveFolder(const std::string&) override { return absl::OkStatus(); }

 private:
  struct Writer : data::SpillWriter {
    explicit Writer(std::string& out) : out(out) {}
    absl::Status Append(absl::string_view bytes) override {
      out.append(bytes.data(), bytes.size());
      return absl::OkStatus();
    }
    absl::Status Commit() override { return absl::OkStatus(); }
    std::string& out;
  };
  struct Reader : data::SpillReader {
    explicit Reader(const std::string& in) : in(in) {}
    uint64_t size() const override { return in.size(); }
    absl::Status ReadAt(uint64_t offset, char* out, size_t bytes) const override {
      CHECK(offset <= in.size() && bytes <= in.size() - offset) << "a read beyond the file";
      std::memcpy(out, in.data() + offset, bytes);
      return absl::OkStatus();
    }
    const std::string& in;
  };

  std::string bytes_;
};

const data::RecordFileType kType{data::RecordKind::kPairs, 16, data::DigestOf("fuzz")};

void RunRecordFile(absl::string_view bytes) {
  MemoryFiles files{std::string(bytes)};
  absl::StatusOr<data::RecordFile> file = data::RecordFile::Open(files, "file", kType);
  if (!file.ok()) {
    CHECK(!file.status().message().empty());
    return;
  }
  uint64_t records = 0;
  std::string block(7 * kType.record_bytes, '\0');
  for (size_t section = 0; section < file->sections().size(); ++section) {
    data::SectionReader reader(*file, section);
    absl::StatusOr<uint64_t> read = reader.Read(block.data(), 7);
    for (; read.ok() && *read > 0; read = reader.Read(block.data(), 7)) records += *read;
    if (!read.ok()) return;
  }
  CHECK_EQ(records, file->records());
  CHECK(!file->Read(records, 1, block.data()).ok());
}

std::string RecordFileSeed() {
  MemoryFiles files("");
  absl::StatusOr<data::RecordFileWriter> out = data::RecordFileWriter::Create(files, "file", kType);
  CHECK(out.ok());
  const std::string records(5 * kType.record_bytes, 'r');
  CHECK(out->Append(records.data(), 3).ok());
  out->NextSection();
  CHECK(out->Append(records.data(), 5).ok());
  CHECK(out->Commit({1, 2, 3}).ok());
  return files.bytes();
}

// Any bytes: nothing is read past the end, and blocks of words do not change them.
void RunWordHasher(absl::string_view bytes) {
  static const data::FoldTable* const table = new data::FoldTable;
  data::WordHasher whole(*table, bytes), pieces(*table, bytes);
  std::vector<uint64_t> all(bytes.size() + 1), found;
  all.resize(whole.Next(all.data(), all.size()));
  uint64_t block[3];
  while (size_t count = pieces.Next(block, 3)) found.insert(found.end(), block, block + count);
  CHECK(found == all) << "words depend on the size of the blocks";
}

}  // namespace

std::vector<Target> DedupTargets() {
  return {{"spill_file", RunRecordFile, {RecordFileSeed()}},
          {"word_hasher", RunWordHasher, {"The caf\xc3\xa9, 12,5 \xe5\xa4\xa9\xe6\xb0\x94x \xf0\x9f\x99\x82 o'clock"}}};
}

}  // namespace llmctl::fuzz
