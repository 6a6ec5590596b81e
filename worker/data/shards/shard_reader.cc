#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"

#include "common/base/check.h"
#include "common/base/status.h"
#include "worker/data/shards/dataset.h"
#include "worker/data/shards/index_format.h"

namespace llmctl::data {
namespace {

class MappedFile {
 public:
  static absl::StatusOr<std::unique_ptr<MappedFile>> Open(const std::string& path) {
    int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return ErrnoStatus(errno, absl::StrCat("open ", path));
    struct stat info;
    int failed = ::fstat(fd, &info);
    void* mapping = nullptr;
    // An empty file cannot be mapped, and need not be.
    if (failed == 0 && info.st_size > 0) {
      mapping = ::mmap(nullptr, info.st_size, PROT_READ, MAP_SHARED, fd, 0);
      failed = mapping == MAP_FAILED;
    }
    int error = errno;
    ::close(fd);
    if (failed) return ErrnoStatus(error, absl::StrCat("map ", path));
    return std::unique_ptr<MappedFile>(new MappedFile(static_cast<const char*>(mapping), info.st_size));
  }
  ~MappedFile() {
    if (data_ != nullptr) ::munmap(const_cast<char*>(data_), bytes_);
  }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  absl::string_view content() const { return {data_, bytes_}; }

 private:
  MappedFile(const char* data, size_t bytes) : data_(data), bytes_(bytes) {}
  const char* data_;
  size_t bytes_;
};

class MegatronReader : public ShardReader {
 public:
  MegatronReader(std::unique_ptr<MappedFile> bin, IndexSummary index) : bin_(std::move(bin)), index_(index) {}

  int64_t tokens() const override { return index_.tokens; }
  int64_t documents() const override { return index_.documents; }

  void Copy(int64_t begin, absl::Span<int32_t> out) const override {
    CHECK(begin >= 0 && begin + static_cast<int64_t>(out.size()) <= index_.tokens)
        << "tokens [" << begin << ", +" << out.size() << ") of " << index_.tokens;
    const char* source = bin_->content().data() + begin * TokenBytes(index_.type);
    if (index_.type == TokenType::kInt32) {
      std::memcpy(out.data(), source, out.size() * sizeof(int32_t));
      return;
    }
    for (size_t i = 0; i < out.size(); ++i) {
      uint16_t token;
      std::memcpy(&token, source + 2 * i, sizeof token);
      out[i] = token;
    }
  }

 private:
  std::unique_ptr<MappedFile> bin_;
  IndexSummary index_;
};

absl::StatusOr<SplitInfo> FindSplit(const DatasetManifest& manifest, const std::string& directory,
                                    const std::string& split) {
  for (const SplitInfo& info : manifest.splits) {
    if (info.name == split) return info;
  }
  return absl::InvalidArgumentError(absl::StrCat("dataset ", directory, " has no split \"", split, "\""));
}

}  // namespace

absl::StatusOr<std::unique_ptr<ShardReader>> ShardReader::Open(const std::string& directory, const std::string& split) {
  LLM_ASSIGN_OR_RETURN(DatasetManifest manifest, ReadManifest(directory));
  LLM_ASSIGN_OR_RETURN(SplitInfo info, FindSplit(manifest, directory, split));
  std::string stem = absl::StrCat(directory, "/", split);
  LLM_ASSIGN_OR_RETURN(std::unique_ptr<MappedFile> idx, MappedFile::Open(stem + ".idx"));
  absl::StatusOr<IndexSummary> index = CheckIndex(idx->content());
  if (!index.ok()) return Annotate(index.status(), stem, ".idx");
  LLM_ASSIGN_OR_RETURN(std::unique_ptr<MappedFile> bin, MappedFile::Open(stem + ".bin"));
  int64_t bin_bytes = bin->content().size();
  if (bin_bytes != index->tokens * TokenBytes(index->type)) {
    return absl::DataLossError(absl::StrCat(stem, ".bin has ", bin_bytes, " bytes, the index says ", index->tokens,
                                            " tokens of ", TokenBytes(index->type),
                                            " bytes; prepare the dataset anew"));
  }
  if (index->tokens != info.tokens || index->documents != info.documents ||
      index->type != TokenTypeFor(manifest.vocabulary_size)) {
    return absl::DataLossError(
        absl::StrCat(stem, ".idx has ", index->documents, " documents and ", index->tokens, " tokens of ",
                     TokenBytes(index->type), " bytes, the manifest says ", info.documents, " and ", info.tokens,
                     " of ", TokenBytes(TokenTypeFor(manifest.vocabulary_size)), "; the files are not of one dataset"));
  }
  return std::make_unique<MegatronReader>(std::move(bin), *index);
}

}  // namespace llmctl::data
