#include "worker/data/perplexity/arpa_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <filesystem>
#include <utility>

#include <zlib.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "common/base/check.h"
#include "common/base/file.h"
#include "common/base/status.h"
#include "common/base/unique_fd.h"

namespace llmctl::data {
namespace {

constexpr size_t kWriteBytes = 256 << 10;

void AppendNumber(float value, std::string& out) {
  char digits[32];
  std::to_chars_result result = std::to_chars(digits, digits + sizeof digits, value == 0 ? 0.0f : value);
  out.append(digits, result.ptr - digits);
}

}  // namespace

struct ArpaWriter::File {
  std::string temporary;
  gzFile gz = nullptr;

  ~File() {
    if (gz != nullptr) gzclose_w(gz);
    if (!temporary.empty()) ::unlink(temporary.c_str());
  }
};

ArpaWriter::ArpaWriter(std::string path, const std::vector<uint64_t>& counts, std::unique_ptr<File> file)
    : path_(std::move(path)), counts_(counts), file_(std::move(file)) {}
ArpaWriter::~ArpaWriter() = default;

absl::StatusOr<std::unique_ptr<ArpaWriter>> ArpaWriter::Create(const std::string& path,
                                                               const std::vector<uint64_t>& counts) {
  std::string folder = std::filesystem::path(path).parent_path().string();
  if (!folder.empty()) LLM_RETURN_IF_ERROR(MakeDirectoriesDurably(folder));
  auto file = std::make_unique<File>();
  file->temporary = absl::StrCat(path, ".tmp.", ::getpid());
  errno = 0;
  // T: as it is.
  file->gz = gzopen(file->temporary.c_str(), absl::EndsWith(path, ".gz") ? "wbe6" : "wbeT");
  if (file->gz == nullptr) return ErrnoStatus(errno == 0 ? ENOMEM : errno, absl::StrCat("create ", file->temporary));
  gzbuffer(file->gz, kWriteBytes);
  std::unique_ptr<ArpaWriter> writer(new ArpaWriter(path, counts, std::move(file)));
  writer->buffer_ = "\\data\\\n";
  for (size_t i = 0; i < counts.size(); ++i) absl::StrAppend(&writer->buffer_, "ngram ", i + 1, "=", counts[i], "\n");
  return writer;
}

absl::Status ArpaWriter::Flush() {
  if (buffer_.empty()) return absl::OkStatus();
  errno = 0;
  if (gzwrite(file_->gz, buffer_.data(), static_cast<unsigned>(buffer_.size())) == 0) {
    return ErrnoStatus(errno == 0 ? EIO : errno, absl::StrCat("write ", file_->temporary));
  }
  buffer_.clear();
  return absl::OkStatus();
}

absl::Status ArpaWriter::Add(const ArpaNgram& gram) {
  while (gram.order != order_) {
    CHECK_EQ(left_, 0u) << "the header says how many there are";
    CHECK(gram.order > order_) << "lower orders come first";
    left_ = counts_[order_++];
    absl::StrAppend(&buffer_, "\n\\", order_, "-grams:\n");
  }
  CHECK(left_ > 0) << "the header says how many there are";
  --left_;
  AppendNumber(gram.log_probability, buffer_);
  for (int i = 0; i < gram.order; ++i) absl::StrAppend(&buffer_, i == 0 ? "\t" : " ", gram.words[i]);
  if (gram.has_backoff) {
    buffer_ += '\t';
    AppendNumber(gram.log_backoff, buffer_);
  }
  buffer_ += '\n';
  return buffer_.size() >= kWriteBytes ? Flush() : absl::OkStatus();
}

absl::Status ArpaWriter::Finish() {
  // Orders without n-grams have a section too.
  while (order_ < static_cast<int>(counts_.size())) {
    CHECK_EQ(left_, 0u) << "the header says how many there are";
    left_ = counts_[order_++];
    absl::StrAppend(&buffer_, "\n\\", order_, "-grams:\n");
  }
  CHECK_EQ(left_, 0u) << "the header says how many there are";
  buffer_ += "\n\\end\\\n";
  LLM_RETURN_IF_ERROR(Flush());
  const std::string temporary = file_->temporary;
  errno = 0;
  if (gzclose_w(std::exchange(file_->gz, nullptr)) != Z_OK) {
    return ErrnoStatus(errno == 0 ? EIO : errno, absl::StrCat("write ", temporary));
  }
  UniqueFd fd(::open(temporary.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid() || ::fsync(fd.get()) != 0) return ErrnoStatus(errno, absl::StrCat("fsync ", temporary));
  if (::rename(temporary.c_str(), path_.c_str()) != 0) {
    return ErrnoStatus(errno, absl::StrCat("rename ", temporary, " to ", path_));
  }
  file_->temporary.clear();
  std::string folder = std::filesystem::path(path_).parent_path().string();
  return SyncDirectory(folder.empty() ? "." : folder);
}

}  // namespace llmctl::data
