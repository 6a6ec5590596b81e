// The streams of compressed files; byte_stream.h chooses among them.
#pragma once

#include <memory>

#include "worker/data/read/byte_stream.h"
#include "worker/data/read/source_buffer.h"

namespace llmctl::data {

// gzip, of any number of members (RFC 1952). Zeros after the last member are padding; up to 64 KiB of anything else
// there is garbage, which is counted, and more is taken for damage.
std::unique_ptr<ByteStream> MakeGzipStream(SourceBuffer source, FrameStart start);

// zstd, of any number of frames, skippable ones among them (RFC 8878).
std::unique_ptr<ByteStream> MakeZstdStream(SourceBuffer source, FrameStart start, int64_t window_bytes_max);

bool BeginsAsGzip(absl::string_view bytes);
bool BeginsAsZstd(absl::string_view bytes);

}  // namespace llmctl::data
