// Focus: which entity the coordinator is working on at this moment, in memory that may outlive its process.
//
// A bug that only one job's state brings out would otherwise crash the coordinator again after each restart, and with
// it the service for all. Whoever begins to work on an entity says so here, and a restart finds the last word.
// Writing it costs as much as copying a name.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>

#include "absl/strings/string_view.h"

namespace llmctl {

class Focus {
 public:
  enum class Stage { kLoad, kStep };
  static constexpr size_t kNameMax = 200;

  // What lies in the memory: the newest name, and 0 where there is none.
  struct Cell {
    char stage = 0;  // 'l', 's', or 0: nothing is being worked on
    char entity[kNameMax + 1] = "";
  };

  explicit Focus(Cell& cell) : cell_(cell) {}

  // `kind` is "job", "node" or "submission". A name that is too long is cut.
  void Set(Stage stage, absl::string_view kind, absl::string_view id) {
    Clear();
    size_t kind_size = std::min(kind.size(), kNameMax - 1);
    size_t id_size = std::min(id.size(), kNameMax - 1 - kind_size);
    std::memcpy(cell_.entity, kind.data(), kind_size);
    cell_.entity[kind_size] = ' ';
    std::memcpy(cell_.entity + kind_size + 1, id.data(), id_size);
    cell_.entity[kind_size + 1 + id_size] = 0;
    // The crash that matters comes from the same thread, so only the compiler must keep the order.
    std::atomic_signal_fence(std::memory_order_seq_cst);
    cell_.stage = stage == Stage::kLoad ? 'l' : 's';
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }
  void Clear() {
    std::atomic_signal_fence(std::memory_order_seq_cst);
    cell_.stage = 0;
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }

 private:
  Cell& cell_;
};

}  // namespace llmctl
