// Strings kept in a few large blocks: one allocation for many, all freed at once.
#pragma once

#include <cstring>
#include <memory>
#include <vector>

#include "absl/strings/string_view.h"

namespace llmctl::data {

class StringArena {
 public:
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
    std::memcpy(Reserve(text.size() + 1), text.data(), text.size());
    return Commit(text.size());
  }
  // Forgets all strings and keeps the largest block.
  void Clear();

 private:
  struct Block {
    std::unique_ptr<char[]> bytes;
    size_t size = 0;
  };
  void Grow(size_t bytes);

  std::vector<Block> blocks_;
  char* at_ = nullptr;
  size_t left_ = 0;
};

}  // namespace llmctl::data
