#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <limits>

#include "absl/strings/str_cat.h"

#include "common/base/digest.h"
#include "common/base/status.h"
#include "worker/data/shards/dataset.h"
#include "worker/data/shards/index_format.h"

namespace llmctl::data {
namespace {

constexpr size_t kBufferBytes = 1 << 20;

template <typename T>
absl::string_view BytesOf(absl::Span<const T> values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

// A file written front to back, with the checksum of what was written.
class OutputFile {
 public:
  static absl::StatusOr<std::unique_ptr<OutputFile>> Create(const std::string& path) {
    int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0) return ErrnoStatus(errno, absl::StrCat("create ", path));
    return std::unique_ptr<OutputFile>(new OutputFile(fd, path));
  }
  ~OutputFile() { ::close(fd_); }
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  absl::Status Append(absl::string_view bytes) {
    buffer_.append(bytes.data(), bytes.size());
    return buffer_.size() < kBufferBytes ? absl::OkStatus() : Flush();
  }

  // Everything is on disk afterwards.
  absl::StatusOr<std::string> Finish() {
    LLM_RETURN_IF_ERROR(Flush());
    if (::fsync(fd_) != 0) return ErrnoStatus(errno, absl::StrCat("fsync ", path_));
    return checksum_.Hex();
  }

 private:
  OutputFile(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}

  absl::Status Flush() {
    checksum_.Add(buffer_.data(), buffer_.size());
    absl::string_view rest = buffer_;
    while (!rest.empty()) {
      ssize_t n = ::write(fd_, rest.data(), rest.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return ErrnoStatus(errno, absl::StrCat("write ", path_));
      rest.remove_prefix(n);
    }
    buffer_.clear();
    return absl::OkStatus();
  }

  int fd_;
  std::string path_;
  std::string buffer_;
  StreamingChecksum checksum_;
};

class MegatronWriter : public ShardWriter {
 public:
  MegatronWriter(std::string split, int vocabulary_size, std::unique_ptr<OutputFile> bin,
                 std::unique_ptr<OutputFile> idx)
      : split_(std::move(split)),
        vocabulary_size_(vocabulary_size),
        type_(TokenTypeFor(vocabulary_size)),
        bin_(std::move(bin)),
        idx_(std::move(idx)) {}

  absl::Status AddDocument(absl::Span<const int32_t> tokens) override {
    if (tokens.empty()) return absl::InvalidArgumentError("a document needs at least one token");
    if (tokens.size() > static_cast<size_t>(std::numeric_limits<int32_t>::max())) {
      return absl::InvalidArgumentError(
          absl::StrCat("a document of ", tokens.size(), " tokens does not fit the index"));
    }
    for (int32_t token : tokens) {
      if (token < 0 || token >= vocabulary_size_) {
        return absl::InvalidArgumentError(
            absl::StrCat("token ", token, " is not in the vocabulary of ", vocabulary_size_));
      }
    }
    if (type_ == TokenType::kUint16) {
      narrow_.assign(tokens.begin(), tokens.end());
      LLM_RETURN_IF_ERROR(bin_->Append(BytesOf(absl::MakeConstSpan(narrow_))));
    } else {
      LLM_RETURN_IF_ERROR(bin_->Append(BytesOf(tokens)));
    }
    lengths_.push_back(static_cast<int32_t>(tokens.size()));
    tokens_ += tokens.size();
    return absl::OkStatus();
  }

  absl::StatusOr<SplitInfo> Finish() override {
    SplitInfo info{split_, static_cast<int64_t>(lengths_.size()), tokens_, "", ""};
    LLM_ASSIGN_OR_RETURN(info.bin_checksum, bin_->Finish());
    LLM_RETURN_IF_ERROR(
        IndexText(type_, lengths_).Write([this](absl::string_view bytes) { return idx_->Append(bytes); }));
    LLM_ASSIGN_OR_RETURN(info.idx_checksum, idx_->Finish());
    return info;
  }

 private:
  const std::string split_;
  const int vocabulary_size_;
  const TokenType type_;
  std::unique_ptr<OutputFile> bin_;
  std::unique_ptr<OutputFile> idx_;
  std::vector<uint16_t> narrow_;
  std::vector<int32_t> lengths_;
  int64_t tokens_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ShardWriter>> ShardWriter::Create(const std::string& directory, const std::string& split,
                                                                 int vocabulary_size) {
  LLM_ASSIGN_OR_RETURN(std::unique_ptr<OutputFile> bin,
                       OutputFile::Create(absl::StrCat(directory, "/", split, ".bin")));
  LLM_ASSIGN_OR_RETURN(std::unique_ptr<OutputFile> idx,
                       OutputFile::Create(absl::StrCat(directory, "/", split, ".idx")));
  return std::make_unique<MegatronWriter>(split, vocabulary_size, std::move(bin), std::move(idx));
}

}  // namespace llmctl::data
