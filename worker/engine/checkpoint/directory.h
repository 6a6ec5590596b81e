// The checkpoints of a job on disk: <checkpoint.directory>/step-%08d-a<attempt>-g<generation>/.
//
// A directory belongs to one generation's one step, so two generations never write the same files, and a stale
// one that is still alive can do no harm.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace llmctl::checkpoint {

struct CheckpointName {
  int64_t step = 0;
  int64_t attempt = 0;
  int64_t generation = 0;
  bool operator==(const CheckpointName&) const = default;
};

std::string FormatCheckpointName(const CheckpointName& name);
// InvalidArgument unless it is exactly what FormatCheckpointName writes.
absl::StatusOr<CheckpointName> ParseCheckpointName(absl::string_view name);

struct ListedCheckpoint {
  std::string path;
  CheckpointName name;
  bool has_manifest = false;  // false: a save that never finished, or a removal that was cut short
};

// By (step, generation), oldest first; other names are passed over. Empty if the directory does not exist.
absl::StatusOr<std::vector<ListedCheckpoint>> ListCheckpoints(const std::string& directory);

// Removes the checkpoint at `path`, which must lie directly in `directory` and be named as one; the manifest goes
// first, so that what is left after a crash is not taken for a checkpoint. Only files that a checkpoint has are
// deleted: FailedPrecondition if others are there. OK if it is gone already.
absl::Status RemoveCheckpoint(const std::string& directory, const std::string& path);

}  // namespace llmctl::checkpoint
