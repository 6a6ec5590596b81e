// Arena: all memory of a training process, mapped once.
//
// Fresh pages cost more than the arithmetic on them (page faults of big temporaries take a third of a stock
// PyTorch CPU step), and a training step needs the same buffers every time. So everything that lives as
// long as the job (parameters, optimizer state, gradients, activations, workspaces) is cut, in order, from
// one mapping with huge pages, sized by the plan before training starts. Nothing is given back.
//
// Not thread-safe: allocation happens while the model is built, on one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace llmctl::engine {

class Arena {
 public:
  // Reserves `bytes` of zeroed memory. ResourceExhausted if the system refuses.
  static absl::StatusOr<Arena> Create(size_t bytes);

  Arena(Arena&& other) noexcept;
  Arena& operator=(Arena&&) = delete;
  ~Arena();

  // `count` zeroed elements from a page on, in whole pages (layout::WholePages). `label` names the use.
  // Running past the plan is a bug of the plan and aborts with both figures.
  template <typename T>
  T* Allocate(int64_t count, absl::string_view label) {
    return static_cast<T*>(AllocateBytes(static_cast<size_t>(count) * sizeof(T), label));
  }

  size_t capacity_bytes() const { return capacity_; }
  size_t used_bytes() const { return used_; }

  struct Use {
    std::string label;
    size_t bytes;
  };
  // Bytes by label, in order of first use.
  const std::vector<Use>& uses() const { return uses_; }

 private:
  Arena(char* base, size_t capacity) : base_(base), capacity_(capacity) {}
  void* AllocateBytes(size_t bytes, absl::string_view label);

  char* base_;
  size_t capacity_;
  size_t used_ = 0;
  std::vector<Use> uses_;
};

}  // namespace llmctl::engine
