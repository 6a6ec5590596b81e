// collectives.ring: the last collectives of a trainer, in a file that outlives it.
//
// After a crash or a hang the question is which collective each rank was in. The answer must not depend on the
// process being able to speak, so every call is noted in a memory-mapped file before and after it runs
// (worker/engine/comm/ring.h writes it): the kernel keeps the pages whatever becomes of the process. No fsync: the
// file answers for a lost process, not for a lost host.
//
// The file is a 64-byte header and `capacity` records; record number s lies at s % capacity. A reader of a live file
// may see a record half written; its sequence number is stored last and tells.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace llmctl::contract {

enum class RingState : uint8_t { kEntered = 1, kDone = 2, kFailed = 3 };

struct RingRecord {
  uint64_t sequence = 0;    // 1, 2, ... over all groups of the process
  uint64_t number = 0;      // 1, 2, ... within the group: the same call has the same number on all its ranks
  char group[8] = {};       // "data", "tensor", ...
  char operation[16] = {};  // "all_reduce", ...
  char site[24] = {};       // the caller's name for it ("grad.bucket"); texts are cut, and end with a zero
  char detail[32] = {};     // which of the site's calls ("layers.7.mlp.down_proj"); may be empty
  int64_t count = 0;        // elements
  int64_t entered_nanoseconds = 0;  // CLOCK_MONOTONIC
  int64_t done_nanoseconds = 0;     // 0 until it returned
  RingState state = RingState::kEntered;
  uint8_t element_bytes = 0;
  uint8_t reserved[6] = {};
};
static_assert(sizeof(RingRecord) == 128);

struct RingHeader {
  char magic[8] = {'L', 'L', 'M', 'R', 'I', 'N', 'G', '2'};
  uint64_t record_bytes = sizeof(RingRecord);
  uint64_t capacity = 0;
  char reserved[40] = {};
};
static_assert(sizeof(RingHeader) == 64);

inline size_t RingFileBytes(uint64_t capacity) { return sizeof(RingHeader) + capacity * sizeof(RingRecord); }

// The records of a ring file, oldest first. DataLoss if it is not one.
absl::StatusOr<std::vector<RingRecord>> ReadRing(const std::string& path);

}  // namespace llmctl::contract
