// The manifest of a checkpoint: manifest.json, written last. A checkpoint is whole exactly if its manifest is
// there and every file has the size and checksum that it promises.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "common/layout/model_shape.h"
#include "worker/engine/checkpoint/ledger.h"
#include "worker/engine/checkpoint/safetensors.h"

namespace llmctl::checkpoint {

inline constexpr int kManifestVersion = 1;
inline constexpr char kManifestName[] = "manifest.json";

struct FileRecord {
  int64_t bytes = 0;
  std::string checksum;  // Checksum128
};

struct TensorRecord {
  std::string file;
  DataType type = DataType::kF32;
  std::string checksum;  // of the tensor's bytes, so that damage can be told apart by tensor
};

struct OptimizerState {
  std::string type;  // "adamw"
  int64_t step = 0;
};

struct Manifest {
  int version = kManifestVersion;
  std::string job;
  int64_t step = 0;
  int64_t attempt = 0;
  int64_t generation = 0;
  std::string spec_digest;
  layout::ModelShape model;
  std::string dataset_digest;
  std::string sampler_digest;
  Ledger ledger;
  int64_t consumed_samples = 0;  // = ledger.next_sample()
  int64_t consumed_tokens = 0;
  OptimizerState optimizer;
  uint64_t seed = 0;
  // What the bits of a run depend on besides its inputs (precision, library versions, threads, ...): resuming
  // is exact only where it is the same.
  std::map<std::string, std::string> numerics;
  std::map<std::string, FileRecord> files;      // by name in the directory; filled in by Save
  std::map<std::string, TensorRecord> tensors;  // by slice name; filled in by Save
};

std::string EncodeManifest(const Manifest& manifest);
// InvalidArgument names the field at fault: missing, mistyped, unknown, out of range or contradicting another.
absl::StatusOr<Manifest> DecodeManifest(absl::string_view json);

// SHA-256 of manifest.json as it lies there: what a commit names, and a load checks.
std::string ManifestDigest(absl::string_view json);

// File names that may stand in a manifest: [a-z0-9._-]+.safetensors, not starting with a dot.
bool IsTensorFileName(absl::string_view name);

}  // namespace llmctl::checkpoint
