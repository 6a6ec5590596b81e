// The evidence bundle: all that a host can still say about a gang that ended badly, in one archive.
//
//   host.json                 whose it is: job, attempt, generation, node, ranks, world_size, and when
//   kernel.log                the end of the kernel's messages
//   rank-<n>/view.json        where the rank was (common/diagnosis/rank_view.h)
//   rank-<n>/stacks.txt       its threads, if a picture was taken before its end
//   rank-<n>/collectives.txt  its last collectives
//   rank-<n>/{stdout,stderr,shim}.log  the ends of the logs
//   rank-<n>/environment.txt  without secrets (redact.h)
//   rank-<n>/trainer.json     its configuration, with the digest of the job's specification
//
// What was fleeting (threads, phases, collectives) was kept by shim and trainer when it happened; this only puts it
// together, so it may be late and slow.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "common/archive/tar.h"
#include "common/base/ids.h"
#include "common/base/instant.h"

namespace llmctl::agent {

struct BundleSource {
  GenerationId generation;
  std::string node;
  std::vector<int> ranks;
  std::string state_dir;
};

// Of the files of one archive: a host with many ranks keeps less of their logs, and if need be less of their stacks.
inline constexpr size_t kBundleBytesMax = 8 << 20;

// Ranks whose directory is gone are left out. NotFound: no rank has one. `now` gives ages (monotonic) and the date.
absl::StatusOr<std::vector<archive::File>> MakeBundle(const BundleSource& source, const Instant& now,
                                                      size_t bytes_max = kBundleBytesMax);

// Writes the archive below <state-dir>/evidence and removes the oldest ones beyond what is kept.
absl::Status StoreBundle(const BundleSource& source, const std::vector<archive::File>& files, absl::Time now);

}  // namespace llmctl::agent
