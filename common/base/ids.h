// Names of the things the control plane talks about, each its own type, so that a node id cannot be passed
// where a job id is meant.
//
// Ids are opaque strings made by the coordinator from stored counters ("j-17") or given by hosts ("node-a").
// The three counters are never confused:
//   attempt     user-visible: new processes from durable state
//   generation  the fencing token: +1 at every change of membership of a job
//   term        which coordinator is the writer
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <ostream>
#include <string>
#include <utility>

namespace llmctl {

template <typename Tag>
class StringId {
 public:
  StringId() = default;
  explicit StringId(std::string value) : value_(std::move(value)), head_(HeadOf(value_)) {}
  StringId(const StringId&) = default;
  StringId& operator=(const StringId&) = default;
  // Of what was moved away both parts are empty.
  StringId(StringId&& other) noexcept : value_(std::move(other.value_)), head_(std::exchange(other.head_, 0)) {}
  StringId& operator=(StringId&& other) noexcept {
    value_ = std::move(other.value_);
    head_ = std::exchange(other.head_, 0);
    return *this;
  }

  const std::string& value() const { return value_; }
  bool empty() const { return value_.empty(); }
  // As their strings: ordered by their bytes, then by their lengths.
  friend std::strong_ordering operator<=>(const StringId& a, const StringId& b) {
    if (a.head_ != b.head_) return a.head_ <=> b.head_;
    return a.IsShort() && b.IsShort() ? a.value_.size() <=> b.value_.size() : a.value_.compare(b.value_) <=> 0;
  }
  friend bool operator==(const StringId& a, const StringId& b) {
    if (a.head_ != b.head_ || a.value_.size() != b.value_.size()) return false;
    return a.IsShort() || a.value_ == b.value_;
  }

  template <typename H>
  friend H AbslHashValue(H h, const StringId& id) {
    return H::combine(std::move(h), id.value_);
  }
  friend std::ostream& operator<<(std::ostream& out, const StringId& id) { return out << id.value_; }

 private:
  static constexpr size_t kHeadBytes = sizeof(uint64_t);

  static uint64_t HeadOf(const std::string& value) {
    uint64_t head = 0;
    for (size_t i = 0; i < kHeadBytes; ++i) {
      head = head << 8 | (i < value.size() ? static_cast<unsigned char>(value[i]) : 0);
    }
    return head;
  }
  bool IsShort() const { return value_.size() <= kHeadBytes; }

  std::string value_;
  // The first bytes, as a number that orders as they do; zeros stand behind a short id. Ids are the keys of most maps,
  // and this decides nearly all comparisons without a look at the string.
  uint64_t head_ = 0;
};

using JobId = StringId<struct JobIdTag>;
using NodeId = StringId<struct NodeIdTag>;

// One generation of one job: what every start, collective group, rendezvous key, metric and checkpoint
// path carries.
struct GenerationId {
  JobId job;
  int64_t attempt = 0;     // 1, 2, ... per job
  int64_t generation = 0;  // 1, 2, ... per job, never reused across attempts
  auto operator<=>(const GenerationId&) const = default;
};

inline std::ostream& operator<<(std::ostream& out, const GenerationId& id) {
  return out << id.job << "/" << id.attempt << "/" << id.generation;
}

}  // namespace llmctl
