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
#include <cstdint>
#include <ostream>
#include <string>
#include <utility>

namespace llmctl {

template <typename Tag>
class StringId {
 public:
  StringId() = default;
  explicit StringId(std::string value) : value_(std::move(value)) {}

  const std::string& value() const { return value_; }
  bool empty() const { return value_.empty(); }
  auto operator<=>(const StringId&) const = default;

  template <typename H>
  friend H AbslHashValue(H h, const StringId& id) {
    return H::combine(std::move(h), id.value_);
  }
  friend std::ostream& operator<<(std::ostream& out, const StringId& id) { return out << id.value_; }

 private:
  std::string value_;
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
