// BufferSet: the buffers of a memory plan, cut from the arena and looked up by name while a model is built.
#pragma once

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"

#include "common/layout/memory.h"
#include "worker/engine/memory/arena.h"

namespace llmctl::engine {

class BufferSet {
 public:
  BufferSet(const std::vector<layout::Buffer>& plan, Arena& arena) {
    for (const layout::Buffer& buffer : plan) {
      buffers_[buffer.name] = arena.Allocate<char>(buffer.bytes, buffer.name);
    }
  }

  // Null when the plan has no such buffer.
  template <typename T>
  T* Get(absl::string_view name) const {
    auto it = buffers_.find(name);
    return it == buffers_.end() ? nullptr : reinterpret_cast<T*>(it->second);
  }

 private:
  absl::flat_hash_map<std::string, char*> buffers_;
};

}  // namespace llmctl::engine
