#include <algorithm>
#include <bit>
#include <utility>

#include <zstd.h>
#include <zstd_errors.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "common/base/check.h"
#include "common/base/status.h"
#include "worker/data/read/decoders.h"

namespace llmctl::data {
namespace {

constexpr size_t kMagicBytes = 4;
constexpr size_t kHeaderBytes = 5;  // the least that a frame's header has

uint32_t LittleEndian(absl::string_view bytes) {
  uint32_t value = 0;
  for (size_t i = kMagicBytes; i-- > 0;) value = value << 8 | static_cast<uint8_t>(bytes[i]);
  return value;
}

bool IsMagic(uint32_t value) {
  return value == ZSTD_MAGICNUMBER || (value & ZSTD_MAGIC_SKIPPABLE_MASK) == ZSTD_MAGIC_SKIPPABLE_START;
}

struct FreeContext {
  void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
};

class ZstdStream : public ByteStream {
 public:
  ZstdStream(SourceBuffer source, FrameStart start, int64_t window_bytes_max)
      : source_(std::move(source)), window_bytes_max_(window_bytes_max), next_frame_(start) {
    CHECK(context_ != nullptr) << "only memory can fail";
    int log = std::bit_width(static_cast<uint64_t>(window_bytes_max)) - 1;
    CHECK(!ZSTD_isError(ZSTD_DCtx_setParameter(context_.get(), ZSTD_d_windowLogMax, log))) << log;
  }

  FrameStart frame() const override { return frame_; }
  int64_t offset() const override { return source_.offset(); }

  absl::StatusOr<size_t> Read(char* out, size_t bytes_max) override {
    while (!done_) {
      if (!in_frame_) LLM_RETURN_IF_ERROR(BeginFrame());
      if (done_) break;
      LLM_ASSIGN_OR_RETURN(size_t given, Decode(out, bytes_max));
      if (given > 0) return given;
    }
    return 0;
  }

 private:
  absl::Status BeginFrame() {
    LLM_RETURN_IF_ERROR(source_.Fill(kMagicBytes));
    if (source_.size() == 0) {
      done_ = true;
    } else if (source_.size() < kMagicBytes) {
      End(Reason::kTruncatedFile, "the file ends within the start of a frame");
    } else if (BeginsAsZstd(source_.view())) {
      in_frame_ = true;
      wanted_ = kHeaderBytes;
      frame_ = {source_.offset(), next_frame_.byte};
    } else {
      End(Reason::kCorruptFile, "no frame begins where the one before ends, and the file goes on");
    }
    return absl::OkStatus();
  }

  absl::StatusOr<size_t> Decode(char* out, size_t bytes_max) {
    // No more than the decoder asks for, which is a block: an error loses all that the call decoded.
    LLM_RETURN_IF_ERROR(source_.Fill(std::min(wanted_, SourceBuffer::kBytes)));
    ZSTD_inBuffer in{source_.data(), std::min(wanted_, source_.size()), 0};
    ZSTD_outBuffer to{out, bytes_max, 0};
    size_t result = ZSTD_decompressStream(context_.get(), &to, &in);
    source_.Take(in.pos);
    next_frame_.byte += to.pos;
    if (ZSTD_isError(result)) {
      EndAtError(result);
    } else if (result == 0) {
      in_frame_ = false;
    } else if (in.size == 0 && to.pos == 0) {
      End(Reason::kTruncatedFile, "the file ends within a frame");
    } else {
      wanted_ = result;
    }
    return to.pos;
  }

  void EndAtError(size_t result) {
    if (ZSTD_getErrorCode(result) == ZSTD_error_frameParameter_windowTooLarge) {
      End(Reason::kWindowTooLarge, absl::StrCat("a frame asks for a window of more than ", window_bytes_max_,
                                                " bytes (zstdWindowBytesMax)"));
    } else {
      End(Reason::kCorruptFile, absl::StrCat("a frame does not decode (", ZSTD_getErrorName(result), ")"));
    }
  }

  void End(Reason reason, absl::string_view what) {
    done_ = true;
    fault_ = StreamFault{reason, absl::StrCat("zstd: ", what, ", at byte ", source_.offset(), " of the file")};
  }

  SourceBuffer source_;
  const int64_t window_bytes_max_;
  const std::unique_ptr<ZSTD_DCtx, FreeContext> context_{ZSTD_createDCtx()};
  FrameStart frame_;
  FrameStart next_frame_;
  size_t wanted_ = kHeaderBytes;
  bool in_frame_ = false;
  bool done_ = false;
};

}  // namespace

bool BeginsAsZstd(absl::string_view bytes) { return bytes.size() >= kMagicBytes && IsMagic(LittleEndian(bytes)); }

std::unique_ptr<ByteStream> MakeZstdStream(SourceBuffer source, FrameStart start, int64_t window_bytes_max) {
  return std::make_unique<ZstdStream>(std::move(source), start, window_bytes_max);
}

}  // namespace llmctl::data
