#include "worker/contract/line_splitter.h"

namespace llmctl::contract {

void LineSplitter::Append(absl::string_view bytes) {
  if (overflowed_) return;
  if (begin_ > 0) {
    buffer_.erase(0, begin_);
    scanned_ -= begin_;
    begin_ = 0;
  }
  buffer_.append(bytes.data(), bytes.size());
}

std::optional<std::string> LineSplitter::Next() {
  if (overflowed_) return std::nullopt;
  size_t end = buffer_.find('\n', scanned_);
  size_t length = (end == std::string::npos ? buffer_.size() : end) - begin_;
  if (length > line_bytes_max_) {
    overflowed_ = true;
    buffer_.clear();
    return std::nullopt;
  }
  if (end == std::string::npos) {
    scanned_ = buffer_.size();
    return std::nullopt;
  }
  std::string line = buffer_.substr(begin_, length);
  begin_ = scanned_ = end + 1;
  return line;
}

}  // namespace llmctl::contract
