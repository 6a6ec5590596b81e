#include <algorithm>
#include <utility>

#include <isa-l/igzip_lib.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "common/base/status.h"
#include "worker/data/read/decoders.h"

namespace llmctl::data {
namespace {

constexpr absl::string_view kMagic = "\x1f\x8b";
constexpr size_t kGarbageBytesMax = size_t{64} << 10;

class GzipStream : public ByteStream {
 public:
  GzipStream(SourceBuffer source, FrameStart start) : source_(std::move(source)), next_frame_(start) {}

  FrameStart frame() const override { return frame_; }
  int64_t offset() const override { return source_.offset(); }

  absl::StatusOr<size_t> Read(char* out, size_t bytes_max) override {
    while (!done_) {
      if (!in_member_) LLM_RETURN_IF_ERROR(BeginMember());
      if (done_) break;
      LLM_ASSIGN_OR_RETURN(size_t given, Inflate(out, bytes_max));
      if (given > 0) return given;
    }
    return 0;
  }

 private:
  // At the end of a member there may be another, padding, garbage or nothing.
  absl::Status BeginMember() {
    LLM_RETURN_IF_ERROR(SkipZeros());
    LLM_RETURN_IF_ERROR(source_.Fill(kMagic.size()));
    if (source_.size() == 0) {
      done_ = true;
    } else if (BeginsAsGzip(source_.view())) {
      in_member_ = true;
      frame_ = {source_.offset(), next_frame_.byte};
      isal_inflate_init(&state_);
      state_.crc_flag = ISAL_GZIP;
    } else if (absl::StartsWith(kMagic, source_.view())) {
      End(Reason::kTruncatedFile, "the file ends within a member's header");
    } else {
      return EndInGarbage();
    }
    return absl::OkStatus();
  }

  absl::Status SkipZeros() {
    if (!after_member_) return absl::OkStatus();
    while (true) {
      LLM_RETURN_IF_ERROR(source_.Fill(1));
      absl::string_view bytes = source_.view();
      size_t zeros = std::min(bytes.find_first_not_of('\0'), bytes.size());
      source_.Take(zeros);
      if (zeros < bytes.size() || bytes.empty()) return absl::OkStatus();
    }
  }

  absl::Status EndInGarbage() {
    LLM_RETURN_IF_ERROR(source_.Fill(kGarbageBytesMax + 1));
    if (source_.size() > kGarbageBytesMax) {
      End(Reason::kCorruptFile, "no member begins where the one before ends, and the file goes on");
      return absl::OkStatus();
    }
    ++repairs_.trailing_garbage;
    source_.Take(source_.size());
    done_ = true;
    return absl::OkStatus();
  }

  absl::StatusOr<size_t> Inflate(char* out, size_t bytes_max) {
    LLM_RETURN_IF_ERROR(source_.Fill(1));
    size_t available = source_.size();
    state_.next_in = reinterpret_cast<uint8_t*>(const_cast<char*>(source_.data()));
    state_.avail_in = available;
    state_.next_out = reinterpret_cast<uint8_t*>(out);
    state_.avail_out = std::min(bytes_max, kStepBytes);
    size_t room = state_.avail_out;
    int result = isal_inflate(&state_);
    size_t taken = available - state_.avail_in;
    size_t given = room - state_.avail_out;
    source_.Take(taken);
    next_frame_.byte += given;
    if (result != ISAL_DECOMP_OK) {
      End(Reason::kCorruptFile, FaultText(result));
    } else if (state_.block_state == ISAL_BLOCK_FINISH) {
      in_member_ = false;
      after_member_ = true;
    } else if (taken == 0 && given == 0 && available == 0) {
      End(Reason::kTruncatedFile, "the file ends within a member");
    }
    return given;
  }

  static absl::string_view FaultText(int result) {
    switch (result) {
      case ISAL_INCORRECT_CHECKSUM: return "a member's checksum or length is not that of what was read";
      case ISAL_UNSUPPORTED_METHOD: return "a member is not compressed by deflate";
      default: return "a member does not decode";
    }
  }

  void End(Reason reason, absl::string_view what) {
    done_ = true;
    fault_ = StreamFault{reason, absl::StrCat("gzip: ", what, ", at byte ", source_.offset(), " of the file")};
  }

  static constexpr size_t kStepBytes = size_t{1} << 30;  // the decoder counts in 32 bits

  SourceBuffer source_;
  inflate_state state_;
  FrameStart frame_;
  FrameStart next_frame_;
  bool in_member_ = false;
  bool after_member_ = false;
  bool done_ = false;
};

}  // namespace

bool BeginsAsGzip(absl::string_view bytes) { return absl::StartsWith(bytes, kMagic); }

std::unique_ptr<ByteStream> MakeGzipStream(SourceBuffer source, FrameStart start) {
  return std::make_unique<GzipStream>(std::move(source), start);
}

}  // namespace llmctl::data
