// Which folders of the work folder would survive a loss of power.
//
// Deduplication and encoding write many files without waiting for the disk. When such a folder is finished it is synced
// and noted, at most every few seconds; after a restart of the machine folders that are not noted are thrown away, as
// nobody knows what of them is whole.
#pragma once

#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"

#include "worker/data/pipeline/workspace.h"

namespace llmctl::data {

class WorkJournal {
 public:
  // `workspace` outlives it. `boot_id` tells one run of the machine from another.
  WorkJournal(const Workspace& workspace, std::string boot_id);

  // Before the first stage: removes what may not be whole.
  absl::Status Begin();
  // Nothing more will be written to the folder.
  absl::Status Finished(const std::string& folder);

 private:
  absl::Status Sync();

  const Workspace& workspace_;
  const std::string boot_id_;
  const std::string path_;
  std::set<std::string> finished_;
  absl::Duration synced_at_;  // monotonic
};

// Of the running system.
absl::StatusOr<std::string> BootId();

}  // namespace llmctl::data
