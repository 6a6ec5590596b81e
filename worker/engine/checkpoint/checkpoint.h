// Saving and loading a training state: tensors in safetensors files and a manifest that makes them a checkpoint.
//
// Save writes and fsyncs the files, then the manifest (atomically), then the names: a crash at any point leaves
// a directory without a manifest, which is no checkpoint. It does not commit: which checkpoint is a job's last
// is decided by the coordinator.
//
// CheckpointReader::Open reads every byte once and refuses what does not match the manifest; only then can
// tensors be copied out, so a damaged checkpoint never reaches a model.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

#include "worker/engine/checkpoint/box.h"
#include "worker/engine/checkpoint/manifest.h"
#include "worker/engine/checkpoint/safetensors.h"

namespace llmctl::checkpoint {

// A box of a tensor in the caller's memory, dense; it is written from there without a copy. For a whole tensor
// the box is WholeBox(shape).
struct Slice {
  std::string tensor;
  Box box;
  DataType type = DataType::kF32;
  const void* data = nullptr;
};

struct Saved {
  std::string path;
  std::string manifest_digest;
  int64_t bytes = 0;  // of all files but the manifest
};

// `manifest` without files and tensors; `files` by name ("model.safetensors"). AlreadyExists if this (step,
// attempt, generation) has been saved; what a crash left half-written is replaced.
absl::StatusOr<Saved> Save(const std::string& directory, Manifest manifest,
                           const std::map<std::string, std::vector<Slice>>& files);

// Where a box of a tensor is to go.
struct SliceTarget {
  std::string tensor;
  Box box;
  DataType type = DataType::kF32;
  void* data = nullptr;
};

// Thread-safe.
class CheckpointReader {
 public:
  // NotFound without a manifest; DataLoss naming file, tensor, expected and found where something does not
  // match. `manifest_digest`, unless empty, must be that of the manifest found.
  static absl::StatusOr<std::unique_ptr<CheckpointReader>> Open(const std::string& path,
                                                                const std::string& manifest_digest = "");

  const Manifest& manifest() const { return manifest_; }
  // Whether any slice of the tensor is there.
  bool Contains(const std::string& tensor) const { return slices_.contains(tensor); }

  // Fills all targets, or none: each must be covered by stored slices of its type. Boxes need not be those
  // that were saved.
  absl::Status Load(absl::Span<const SliceTarget> targets) const;

 private:
  struct StoredSlice {
    std::string name;
    Box box;
    DataType type;
    absl::string_view bytes;
  };

  CheckpointReader(std::string path, Manifest manifest) : path_(std::move(path)), manifest_(std::move(manifest)) {}
  absl::Status OpenFile(const std::string& name, const FileRecord& record);
  absl::Status IndexFile(const std::string& name, const SafetensorsReader& file);
  absl::Status CheckTarget(const SliceTarget& target) const;

  std::string path_;
  Manifest manifest_;
  std::vector<std::unique_ptr<SafetensorsReader>> files_;
  std::map<std::string, std::vector<StoredSlice>> slices_;  // by tensor
};

}  // namespace llmctl::checkpoint
