#include "worker/data/pipeline/block_file.h"

#include <utility>

#include <zstd.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "common/base/digest.h"
#include "common/base/status.h"
#include "worker/data/pipeline/wire.h"

namespace llmctl::data {
namespace {

constexpr absl::string_view kMagic("LLMBLK1\n", 8);
constexpr size_t kDigestBytes = 32;
constexpr size_t kHeaderBytes = 8 + kDigestBytes;
constexpr size_t kBlockHeadBytes = 16;
constexpr size_t kTailBytes = 32;
constexpr size_t kBlockBytes = 1 << 20;
constexpr uint32_t kBlockBytesMax = 0x7fffffff;
constexpr int kLevel = 1;

void PutHead(uint32_t bytes, absl::string_view stored, std::string& out) {
  PutFixed32(bytes, out);
  PutFixed32(static_cast<uint32_t>(stored.size()), out);
  PutFixed64(Fingerprint64(stored), out);
}

struct Head {
  uint32_t bytes = 0;
  uint32_t stored = 0;
  uint64_t checksum = 0;
};

Head ReadHead(absl::string_view bytes) {
  WireReader wire(bytes);
  Head head;
  head.bytes = wire.Fixed32();
  head.stored = wire.Fixed32();
  head.checksum = wire.Fixed64();
  return head;
}

}  // namespace

BlockFileWriter::BlockFileWriter(std::unique_ptr<SpillWriter> out, const std::string& digest)
    : out_(std::move(out)), identity_(Fingerprint64(digest)) {}
BlockFileWriter::~BlockFileWriter() = default;

absl::StatusOr<std::unique_ptr<BlockFileWriter>> BlockFileWriter::Create(SpillFiles& files, const std::string& path,
                                                                         const std::string& digest) {
  LLM_ASSIGN_OR_RETURN(std::unique_ptr<SpillWriter> out, files.Create(path));
  std::unique_ptr<BlockFileWriter> writer(new BlockFileWriter(std::move(out), digest));
  LLM_RETURN_IF_ERROR(writer->Put(absl::StrCat(kMagic, digest)));
  return writer;
}

absl::Status BlockFileWriter::Append(absl::string_view record) {
  if (record.size() > kBlockBytesMax / 2) {
    return absl::InvalidArgumentError(absl::StrCat("a record of ", record.size(), " bytes is too large to keep"));
  }
  if (!block_.empty() && block_.size() + record.size() > kBlockBytes) LLM_RETURN_IF_ERROR(Flush());
  PutVarint(record.size(), block_);
  block_.append(record.data(), record.size());
  ++records_;
  return absl::OkStatus();
}

absl::Status BlockFileWriter::Flush() {
  if (block_.empty()) return absl::OkStatus();
  stored_.resize(ZSTD_compressBound(block_.size()));
  size_t stored = ZSTD_compress(stored_.data(), stored_.size(), block_.data(), block_.size(), kLevel);
  if (ZSTD_isError(stored)) return absl::InternalError(absl::StrCat("compress: ", ZSTD_getErrorName(stored)));
  stored_.resize(stored);
  std::string head;
  PutHead(static_cast<uint32_t>(block_.size()), stored_, head);
  identity_ = Fingerprint64(head, identity_);
  LLM_RETURN_IF_ERROR(Put(head));
  block_.clear();
  return Put(stored_);
}

absl::StatusOr<uint64_t> BlockFileWriter::Commit(absl::string_view footer) {
  LLM_RETURN_IF_ERROR(Flush());
  uint64_t footer_offset = offset_;
  std::string head;
  PutHead(0, footer, head);
  identity_ = Fingerprint64(head, identity_);
  LLM_RETURN_IF_ERROR(Put(head));
  LLM_RETURN_IF_ERROR(Put(footer));
  std::string tail;
  PutFixed64(footer_offset, tail);
  PutFixed64(records_, tail);
  PutFixed64(identity_, tail);
  absl::StrAppend(&tail, kMagic);
  LLM_RETURN_IF_ERROR(Put(tail));
  LLM_RETURN_IF_ERROR(out_->Commit());
  return identity_;
}

absl::Status BlockFileWriter::Put(absl::string_view bytes) {
  offset_ += bytes.size();
  return out_->Append(bytes);
}

absl::StatusOr<std::unique_ptr<BlockFileReader>> BlockFileReader::Open(SpillFiles& files, const std::string& path,
                                                                       const std::string& digest) {
  std::unique_ptr<BlockFileReader> reader(new BlockFileReader);
  reader->path_ = path;
  LLM_ASSIGN_OR_RETURN(reader->in_, files.Open(path));
  LLM_RETURN_IF_ERROR(reader->ReadTail(digest));
  return reader;
}

absl::Status BlockFileReader::ReadTail(const std::string& digest) {
  uint64_t size = in_->size();
  if (size < kHeaderBytes + kBlockHeadBytes + kTailBytes) return Damaged("it is too short");
  std::string header(kHeaderBytes, '\0'), tail(kTailBytes, '\0'), head(kBlockHeadBytes, '\0');
  LLM_RETURN_IF_ERROR(in_->ReadAt(0, header.data(), header.size()));
  LLM_RETURN_IF_ERROR(in_->ReadAt(size - kTailBytes, tail.data(), tail.size()));
  if (!absl::StartsWith(header, kMagic) || !absl::EndsWith(tail, kMagic)) {
    return Damaged("its first or last bytes are wrong");
  }
  if (header.compare(kMagic.size(), kDigestBytes, digest) != 0) {
    return absl::FailedPreconditionError(absl::StrCat(path_, " was made from other input or with other settings"));
  }
  WireReader wire(tail);
  footer_offset_ = wire.Fixed64();
  records_ = wire.Fixed64();
  identity_ = wire.Fixed64();
  uint64_t footer_end = size - kTailBytes;
  if (footer_offset_ < kHeaderBytes || footer_offset_ > footer_end - kBlockHeadBytes) {
    return Damaged("its footer is not where it should be");
  }
  LLM_RETURN_IF_ERROR(in_->ReadAt(footer_offset_, head.data(), head.size()));
  Head footer = ReadHead(head);
  if (footer.bytes != 0 || footer.stored != footer_end - footer_offset_ - kBlockHeadBytes) {
    return Damaged("its footer has the wrong size");
  }
  footer_.resize(footer.stored);
  LLM_RETURN_IF_ERROR(in_->ReadAt(footer_offset_ + kBlockHeadBytes, footer_.data(), footer_.size()));
  if (Fingerprint64(footer_) != footer.checksum) return Damaged("its footer's checksum does not hold");
  offset_ = kHeaderBytes;
  return absl::OkStatus();
}

absl::Status BlockFileReader::ReadBlock() {
  std::string head(kBlockHeadBytes, '\0');
  LLM_RETURN_IF_ERROR(in_->ReadAt(offset_, head.data(), head.size()));
  Head block = ReadHead(head);
  if (block.bytes == 0 || block.bytes > kBlockBytesMax || offset_ + kBlockHeadBytes + block.stored > footer_offset_) {
    return Damaged(absl::StrCat("the block at byte ", offset_, " has a wrong size"));
  }
  stored_.resize(block.stored);
  LLM_RETURN_IF_ERROR(in_->ReadAt(offset_ + kBlockHeadBytes, stored_.data(), stored_.size()));
  if (Fingerprint64(stored_) != block.checksum) {
    return Damaged(absl::StrCat("the checksum of the block at byte ", offset_, " does not hold"));
  }
  block_.resize(block.bytes);
  size_t bytes = ZSTD_decompress(block_.data(), block_.size(), stored_.data(), stored_.size());
  if (bytes != block_.size()) return Damaged(absl::StrCat("the block at byte ", offset_, " cannot be decompressed"));
  offset_ += kBlockHeadBytes + block.stored;
  at_ = 0;
  return absl::OkStatus();
}

absl::StatusOr<bool> BlockFileReader::Next(absl::string_view& record) {
  if (at_ == block_.size()) {
    if (offset_ == footer_offset_) return false;
    LLM_RETURN_IF_ERROR(ReadBlock());
  }
  WireReader wire(absl::string_view(block_).substr(at_));
  record = wire.Bytes();
  if (!wire.ok()) return Damaged(absl::StrCat("a record before byte ", offset_, " is cut"));
  at_ = block_.size() - wire.rest().size();
  return true;
}

absl::Status BlockFileReader::Damaged(absl::string_view what) const {
  return absl::DataLossError(
      absl::StrCat(path_, " is damaged: ", what, "; remove it, and what it held is made again"));
}

}  // namespace llmctl::data
