// Ring: the last collectives of this process, in a file that outlives it.
//
// After a crash or a hang the question is which collective each rank was in. The answer must not depend on the
// process being able to speak, so every call is noted in a memory-mapped file before and after it runs: the
// kernel keeps the pages whatever becomes of the process, and the shim reads them. No fsync: the file answers
// for a lost process, not for a lost host.
//
// The file is a 64-byte header and `capacity` records of 64 bytes; record number s lies at s % capacity.
// A reader of a live file may see a record half written; its sequence number is stored last and tells.
//
// Written by one thread; read by anyone.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "worker/engine/comm/collective.h"

namespace llmctl::engine::comm {

enum class RingState : uint8_t { kEntered = 1, kDone = 2, kFailed = 3 };

struct RingRecord {
  uint64_t sequence = 0;  // 1, 2, ...
  char site[24] = {};     // cut at 23 characters
  uint8_t axis = 0;       // Axis
  uint8_t operation = 0;  // Op
  uint8_t type = 0;       // DataType
  RingState state = RingState::kEntered;
  uint32_t reserved = 0;
  int64_t count = 0;               // elements
  int64_t entered_nanoseconds = 0;  // CLOCK_MONOTONIC
  int64_t done_nanoseconds = 0;    // 0 until it returned
};
static_assert(sizeof(RingRecord) == 64);

class Ring {
 public:
  // Creates or replaces the file.
  static absl::StatusOr<std::unique_ptr<Ring>> Create(const std::string& path, int64_t capacity = 1024);
  ~Ring();
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  // Notes that a collective is entered; the result names it for Leave.
  uint64_t Enter(absl::string_view site, Axis axis, Op op, const Buffer& buffer);
  void Leave(uint64_t sequence, bool ok);

 private:
  Ring(char* base, int64_t capacity) : base_(base), capacity_(capacity) {}
  RingRecord& At(uint64_t sequence);

  char* base_;
  int64_t capacity_;
  uint64_t last_ = 0;
};

// The records of a ring file, oldest first. DataLoss if it is not one.
absl::StatusOr<std::vector<RingRecord>> ReadRing(const std::string& path);

}  // namespace llmctl::engine::comm
