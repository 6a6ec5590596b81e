// CrashMarker: the memory of Focus in a small mapped file, so that a crash of the process leaves behind what it was
// working on. It survives the process, not the machine: a power cut is nobody's fault.
//
// A process that is killed in the middle of a step looks like one that crashed in it, hence kCrashesMax.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"

#include "coordinator/model/focus.h"

namespace llmctl::runtime {

class CrashMarker {
 public:
  struct Left {
    Focus::Stage stage = Focus::Stage::kStep;
    std::string entity;
  };

  // Maps the file, which is created if missing. One process at a time.
  static absl::StatusOr<CrashMarker> Open(const std::string& path);
  CrashMarker(CrashMarker&& other) noexcept;
  CrashMarker& operator=(CrashMarker&&) = delete;
  ~CrashMarker();

  // What an earlier process did not come to the end of, until Forget().
  std::optional<Left> left() const;
  void Forget() { focus().Clear(); }

  // Valid as long as the marker.
  Focus focus() { return Focus(*cell_); }

 private:
  explicit CrashMarker(Focus::Cell* cell) : cell_(cell) {}

  Focus::Cell* cell_;
};

}  // namespace llmctl::runtime
