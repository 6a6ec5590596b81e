// Strings kept in a few large blocks: one allocation for many, all freed at once.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

namespace llmctl::data {

class StringArena {
 public:
  StringArena() = default;
  StringArena(StringArena&& other) noexcept { *this = std::move(other); }
  StringArena& operator=(StringArena&& other) noexcept {
    blocks_ = std::move(other.blocks_);
    adopted_ = std::move(other.adopted_);
    at_ = std::exchange(other.at_, nullptr);
    left_ = std::exchange(other.left_, 0);
    return *this;
  }

  // Room for `bytes`; what is not used of it is given to the next.
  char* Reserve(size_t bytes) {
    if (bytes > left_) Grow(bytes);
    return at_;
  }
  // Takes the first `bytes` of what was reserved.
  absl::string_view Commit(size_t bytes) {
    absl::string_view out(at_, bytes);
    at_ += bytes;
    left_ -= bytes;
    return out;
  }
  absl::string_view Copy(absl::string_view text) {
    std::copy(text.begin(), text.end(), Reserve(text.size() + 1));
    return Commit(text.size());
  }
  // Keeps a long string as it is, rather than a copy.
  absl::string_view Adopt(std::string text) {
    adopted_.push_back(std::make_unique<std::string>(std::move(text)));
    return *adopted_.back();
  }
  // Forgets all strings and keeps a block.
  void Clear();

 private:
  struct Block {
    std::unique_ptr<char[]> bytes;
    size_t size = 0;
  };
  void Grow(size_t bytes);

  std::vector<Block> blocks_;
  std::vector<std::unique_ptr<std::string>> adopted_;
  char* at_ = nullptr;
  size_t left_ = 0;
};

}  // namespace llmctl::data
