// The evidence that hosts have collected about an attempt that ended badly, brought together.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "client/cluster/cluster.h"
#include "common/archive/tar.h"
#include "common/diagnosis/rank_view.h"
#include "llmctl/v1/jobs.pb.h"

namespace llmctl::client {

struct HostEvidence {
  std::string node;
  int world_size = 0;
  std::vector<int> ranks;
  std::string archive;  // as it came
  std::map<std::string, std::string> files;

  // Empty if the archive has none of this name.
  std::string File(const std::string& name) const;
};

struct Evidence {
  int64_t attempt = 0;
  std::vector<HostEvidence> hosts;
  std::vector<std::string> missing;  // why nothing came of some ranks
  int world_size = 0;

  std::vector<diagnosis::RankView> Views() const;
  // The host that has this rank; null if none.
  const HostEvidence* Of(int rank) const;
};

absl::StatusOr<HostEvidence> ReadHostEvidence(std::string archive);

// `attempt` is a number, not 0. NotFound: no host has any.
absl::StatusOr<Evidence> FetchEvidence(const v1::Job& job, int64_t attempt, Cluster& cluster);

// The part of stacks.txt that is about the main thread.
std::string MainStack(const std::string& stacks);

}  // namespace llmctl::client
