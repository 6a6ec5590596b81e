// Ring: notes the collectives of this process in the file that worker/contract/collective_ring.h describes.
//
// Written by one thread; read by anyone.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

#include "worker/contract/collective_ring.h"
#include "worker/engine/comm/collective.h"

namespace llmctl::engine::comm {

class Ring {
 public:
  // Creates or replaces the file.
  static absl::StatusOr<std::unique_ptr<Ring>> Create(const std::string& path, int64_t capacity = 1024);
  ~Ring();
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  // Notes that a collective is entered; the result names it for Leave.
  uint64_t Enter(const Site& site, Axis axis, Op op, const Buffer& buffer);
  void Leave(uint64_t sequence, bool ok);

 private:
  Ring(char* base, int64_t capacity) : base_(base), capacity_(capacity) {}
  contract::RingRecord& At(uint64_t sequence);

  char* base_;
  int64_t capacity_;
  uint64_t last_ = 0;
  std::array<uint64_t, kAxes> numbers_ = {};  // by axis
};

}  // namespace llmctl::engine::comm
