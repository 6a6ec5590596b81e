#include "worker/data/spill/record_file.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include <xxhash.h>

#include "common/base/check.h"
#include "common/base/digest.h"
#include "common/base/status.h"

namespace llmctl::data {
namespace {

static_assert(std::endian::native == std::endian::little, "records are written as they lie in memory");

constexpr char kHeaderMagic[] = "LLMSPILL";
constexpr char kFooterMagic[] = "LLMSPEND";
constexpr uint32_t kVersion = 1;
constexpr size_t kHeaderBytes = 64;
constexpr size_t kSectionBytes = 16;
// Notes, sections, records, checksum, magic.
constexpr size_t kTailBytes = sizeof(RecordNotes) + 8 + 8 + 8 + 8;
constexpr size_t kWriteBytes = 1 << 16;

template <typename T>
void Put(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

template <typename T>
T Get(absl::string_view bytes, size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

std::string HeaderOf(const RecordFileType& type) {
  CHECK_EQ(type.digest.size(), 32u) << "a digest of DigestOf";
  std::string header(kHeaderMagic, 8);
  Put(header, kVersion);
  Put(header, static_cast<uint32_t>(type.kind));
  Put(header, type.record_bytes);
  Put(header, uint32_t{0});
  header += type.digest;
  Put(header, Fingerprint64(header));
  return header;
}

}  // namespace

// XXH3's streaming state. (StreamingChecksum of common/base has 128 bits, and says them in hexadecimal.)
class SectionChecksum {
 public:
  SectionChecksum() { XXH3_64bits_reset(state_); }
  SectionChecksum(const SectionChecksum&) = delete;
  SectionChecksum& operator=(const SectionChecksum&) = delete;
  ~SectionChecksum() { XXH3_freeState(state_); }

  void Add(const void* bytes, size_t count) { XXH3_64bits_update(state_, bytes, count); }
  uint64_t Value() const { return XXH3_64bits_digest(state_); }

 private:
  XXH3_state_t* const state_ = XXH3_createState();
};

struct RecordFileWriter::Section {
  uint64_t records = 0;
  SectionChecksum checksum;
};

std::string DigestOf(absl::string_view text) { return Checksum128(text); }

RecordFileWriter::RecordFileWriter(uint32_t record_bytes) : record_bytes_(record_bytes) { NextSection(); }
RecordFileWriter::RecordFileWriter(RecordFileWriter&&) noexcept = default;
RecordFileWriter& RecordFileWriter::operator=(RecordFileWriter&&) noexcept = default;
RecordFileWriter::~RecordFileWriter() = default;

absl::StatusOr<RecordFileWriter> RecordFileWriter::Create(SpillFiles& files, const std::string& path,
                                                          const RecordFileType& type) {
  RecordFileWriter writer(type.record_bytes);
  LLM_ASSIGN_OR_RETURN(writer.out_, files.Create(path));
  writer.header_ = HeaderOf(type);
  writer.buffer_ = writer.header_;
  return writer;
}

absl::Status RecordFileWriter::Append(const void* records, size_t count) {
  const size_t bytes = count * record_bytes_;
  sections_.back()->records += count;
  sections_.back()->checksum.Add(records, bytes);
  if (buffer_.size() + bytes > kWriteBytes) {
    LLM_RETURN_IF_ERROR(out_->Append(buffer_));
    buffer_.clear();
  }
  absl::string_view view(static_cast<const char*>(records), bytes);
  if (bytes > kWriteBytes) return out_->Append(view);
  buffer_.append(view.data(), view.size());
  return absl::OkStatus();
}

void RecordFileWriter::NextSection() { sections_.push_back(std::make_unique<Section>()); }

absl::StatusOr<uint64_t> RecordFileWriter::Commit(const RecordNotes& notes) {
  std::string footer;
  uint64_t records = 0;
  for (const std::unique_ptr<Section>& section : sections_) {
    Put(footer, section->records);
    Put(footer, section->checksum.Value());
    records += section->records;
  }
  Put(footer, notes);
  Put(footer, uint64_t{sections_.size()});
  Put(footer, records);
  uint64_t identity = Fingerprint64(header_ + footer);
  Put(footer, identity);
  footer.append(kFooterMagic, 8);
  buffer_ += footer;
  LLM_RETURN_IF_ERROR(out_->Append(buffer_));
  LLM_RETURN_IF_ERROR(out_->Commit());
  return identity;
}

absl::Status RecordFile::Damaged(absl::string_view what) const {
  return absl::DataLossError(absl::StrCat("read ", path_, ": ", what,
                                          "; remove its folder, then the task that wrote it is run again"));
}

absl::StatusOr<RecordFile> RecordFile::Open(SpillFiles& files, const std::string& path, const RecordFileType& type) {
  RecordFile file;
  file.path_ = path;
  file.record_bytes_ = type.record_bytes;
  LLM_ASSIGN_OR_RETURN(file.in_, files.Open(path));
  std::string header;
  LLM_RETURN_IF_ERROR(file.ReadHeader(type, header));
  LLM_RETURN_IF_ERROR(file.ReadFooter(header));
  return file;
}

absl::Status RecordFile::ReadHeader(const RecordFileType& type, std::string& header) {
  if (in_->size() < kHeaderBytes + kTailBytes) {
    return Damaged(absl::StrCat("expected at least ", kHeaderBytes + kTailBytes, " bytes, found ", in_->size()));
  }
  header.resize(kHeaderBytes);
  LLM_RETURN_IF_ERROR(in_->ReadAt(0, header.data(), header.size()));
  if (absl::string_view(header).substr(0, 8) != kHeaderMagic) return Damaged("it does not begin as such files do");
  if (Fingerprint64(absl::string_view(header).substr(0, 56)) != Get<uint64_t>(header, 56)) {
    return Damaged("the checksum of its header does not hold");
  }
  std::string expected = HeaderOf(type);
  if (header == expected) return absl::OkStatus();
  if (header.compare(0, 24, expected, 0, 24) != 0) {
    return Damaged(absl::StrCat("expected version ", kVersion, ", kind ", static_cast<uint32_t>(type.kind),
                                " and records of ", type.record_bytes, " bytes, found ", Get<uint32_t>(header, 8), ", ",
                                Get<uint32_t>(header, 12), " and ", Get<uint32_t>(header, 16)));
  }
  return absl::FailedPreconditionError(
      absl::StrCat("read ", path_, ": it was made from other settings or other input (digest ", header.substr(24, 32),
                   ", expected ", type.digest, "); run the task that writes it again"));
}

absl::Status RecordFile::ReadFooter(const std::string& header) {
  std::string tail(kTailBytes, '\0');
  LLM_RETURN_IF_ERROR(in_->ReadAt(in_->size() - kTailBytes, tail.data(), tail.size()));
  if (absl::string_view(tail).substr(kTailBytes - 8) != kFooterMagic) {
    return Damaged("its end is missing: it was cut, or appended to");
  }
  notes_ = Get<RecordNotes>(tail, 0);
  const uint64_t sections = Get<uint64_t>(tail, sizeof(RecordNotes));
  records_ = Get<uint64_t>(tail, sizeof(RecordNotes) + 8);
  identity_ = Get<uint64_t>(tail, sizeof(RecordNotes) + 16);
  const uint64_t room = in_->size() - kHeaderBytes - kTailBytes;
  const bool fits = sections <= room / kSectionBytes &&
                    records_ <= (room - sections * kSectionBytes) / record_bytes_ &&
                    records_ * record_bytes_ + sections * kSectionBytes == room;
  if (!fits) {
    return Damaged(absl::StrCat("its footer tells of ", records_, " records in ", sections, " sections, which is not ",
                                "its size of ", in_->size(), " bytes"));
  }
  std::string table(sections * kSectionBytes, '\0');
  LLM_RETURN_IF_ERROR(in_->ReadAt(kHeaderBytes + records_ * record_bytes_, table.data(), table.size()));
  if (Fingerprint64(header + table + tail.substr(0, sizeof(RecordNotes) + 16)) != identity_) {
    return Damaged("the checksum of its footer does not hold");
  }
  uint64_t first = 0;
  for (size_t i = 0; i < sections; ++i) {
    Section section{first, Get<uint64_t>(table, i * kSectionBytes), Get<uint64_t>(table, i * kSectionBytes + 8)};
    if (section.records > records_ - first) return Damaged("its sections have more records than the file");
    first += section.records;
    sections_.push_back(section);
  }
  if (first != records_) return Damaged("its sections have fewer records than the file");
  return absl::OkStatus();
}

absl::Status RecordFile::Read(uint64_t first, uint64_t count, void* out) const {
  if (first > records_ || count > records_ - first) {
    return Damaged(absl::StrCat("records ", first, " to ", first + count, " were asked for, it has ", records_));
  }
  return in_->ReadAt(kHeaderBytes + first * record_bytes_, static_cast<char*>(out), count * record_bytes_);
}

SectionReader::SectionReader(const RecordFile& file, size_t section)
    : file_(file), section_(file.sections()[section]), checksum_(std::make_unique<SectionChecksum>()) {}
SectionReader::SectionReader(SectionReader&&) noexcept = default;
SectionReader::~SectionReader() = default;

absl::StatusOr<uint64_t> SectionReader::Read(void* out, uint64_t count) {
  const uint64_t left = section_.records - at_;
  count = std::min(count, left);
  LLM_RETURN_IF_ERROR(file_.Read(section_.first + at_, count, out));
  checksum_->Add(out, count * file_.record_bytes());
  at_ += count;
  if (count == left && checksum_->Value() != section_.checksum) {
    return file_.Damaged("the checksum of a section does not hold");
  }
  return count;
}

}  // namespace llmctl::data
