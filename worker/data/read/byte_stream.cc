#include "worker/data/read/byte_stream.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "common/base/status.h"
#include "worker/data/read/decoders.h"

namespace llmctl::data {
namespace {

class PlainStream : public ByteStream {
 public:
  PlainStream(SourceBuffer source, bool misnamed) : source_(std::move(source)) {
    repairs_.misnamed_files = misnamed;
  }

  int64_t offset() const override { return source_.offset(); }

  absl::StatusOr<size_t> Read(char* out, size_t bytes_max) override {
    LLM_RETURN_IF_ERROR(source_.Fill(1));
    size_t given = std::min(bytes_max, source_.size());
    std::memcpy(out, source_.data(), given);
    source_.Take(given);
    return given;
  }

 private:
  SourceBuffer source_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ByteStream>> OpenByteStream(const FileSystem& files, const InputFile& file,
                                                           const StreamOptions& options) {
  bool packed = file.compression != Compression::kNone;
  int64_t offset = packed ? options.start.offset : options.start.byte;
  LLM_ASSIGN_OR_RETURN(std::unique_ptr<ByteSource> opened, files.OpenSource(file.path, offset));
  SourceBuffer source(std::move(opened), offset);
  if (!packed) return std::make_unique<PlainStream>(std::move(source), /*misnamed=*/false);
  LLM_RETURN_IF_ERROR(source.Fill(sizeof(uint32_t)));
  if (BeginsAsGzip(source.view())) return MakeGzipStream(std::move(source), options.start);
  if (BeginsAsZstd(source.view())) {
    return MakeZstdStream(std::move(source), options.start, options.zstd_window_bytes_max);
  }
  // One that is cut off within its first bytes is told by its name.
  if (offset > 0 || source.size() < sizeof(uint32_t)) {
    if (file.compression == Compression::kGzip) return MakeGzipStream(std::move(source), options.start);
    return MakeZstdStream(std::move(source), options.start, options.zstd_window_bytes_max);
  }
  return std::make_unique<PlainStream>(std::move(source), /*misnamed=*/true);
}

}  // namespace llmctl::data
