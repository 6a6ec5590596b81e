// What a decoder takes its input from: a window on the bytes of a file that moves on.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

#include "common/base/status.h"
#include "worker/data/read/file_system.h"

namespace llmctl::data {

class SourceBuffer {
 public:
  // `offset` is where the source begins, in its file.
  SourceBuffer(std::unique_ptr<ByteSource> source, int64_t offset) : source_(std::move(source)), base_(offset) {}

  // Reads until there are `bytes`, which are at most kBytes, or the file ends.
  absl::Status Fill(size_t bytes) {
    while (size() < bytes && !at_end_) {
      if (begin_ > 0) {
        std::memmove(bytes_.get(), bytes_.get() + begin_, size());
        base_ += begin_;
        end_ -= begin_;
        begin_ = 0;
      }
      LLM_ASSIGN_OR_RETURN(size_t n, source_->Read(bytes_.get() + end_, kBytes - end_));
      at_end_ = n == 0;
      end_ += n;
    }
    return absl::OkStatus();
  }

  const char* data() const { return bytes_.get() + begin_; }
  size_t size() const { return end_ - begin_; }
  absl::string_view view() const { return {data(), size()}; }
  void Take(size_t bytes) { begin_ += bytes; }
  // In the file, of the first byte that is not taken.
  int64_t offset() const { return base_ + static_cast<int64_t>(begin_); }

  static constexpr size_t kBytes = size_t{256} << 10;

 private:
  std::unique_ptr<ByteSource> source_;
  std::unique_ptr<char[]> bytes_ = std::make_unique_for_overwrite<char[]>(kBytes);
  int64_t base_;  // in the file, of bytes_[0]
  size_t begin_ = 0;
  size_t end_ = 0;
  bool at_end_ = false;
};

}  // namespace llmctl::data
