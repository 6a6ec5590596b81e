// What a local cluster consists of, as its supervisor last wrote it down.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace llmctl::client {

struct DaemonState {
  std::string name;
  int64_t pid = 0;  // 0: waits to be restarted
  int restarts = 0;
  std::string last_end;  // "signal 9", "exit code 1"; empty if it never ended
};

struct LocalState {
  int64_t pid = 0;  // of the supervisor
  int workers = 0;
  int devices_per_worker = 0;
  int64_t start_time = 0;  // Unix seconds
  std::vector<DaemonState> daemons;
};

std::string EncodeLocalState(const LocalState& state);
// InvalidArgument if it is not what EncodeLocalState writes.
absl::StatusOr<LocalState> DecodeLocalState(absl::string_view json);

}  // namespace llmctl::client
