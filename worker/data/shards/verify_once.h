// Whether a dataset's files are what its manifest says, found out once and remembered.
//
// Reading a terabyte before each start of a run would cost more than it saves. The first who reads all files through
// and finds their checksums right leaves a stamp in the dataset's folder, .verified.json, which holds for those files
// as they were then: name, checksum, size, time of change, inode. A file that was written, replaced or copied since has
// others, and is read again. The stamp is no part of the dataset.
//
// Processes that ask at the same time on one host wait for the first of them.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "worker/data/shards/dataset.h"

namespace llmctl::data {

inline constexpr char kVerifiedName[] = ".verified.json";

struct VerifyLimits {
  // More is not read, but said: `llmctl data verify` reads anything.
  int64_t bytes_max = int64_t{16} << 30;
  // The same where no stamp can be left, so that every start would read it.
  int64_t unremembered_bytes_max = int64_t{1} << 30;
};

struct Verification {
  enum class Result { kReadNow, kKnown, kNotRead };
  Result result = Result::kKnown;
  int64_t bytes = 0;  // of all files
  std::string note;   // for people: why nothing was read, or is not remembered; may be empty
};

// DataLoss names the first file that is damaged, with what was expected and found.
absl::StatusOr<Verification> VerifyOnce(const std::string& directory, const DatasetManifest& manifest,
                                        const VerifyLimits& limits);

// Reads all files through: checksums, and every entry of the indexes.
absl::Status VerifyFiles(const std::string& directory, const DatasetManifest& manifest);

// Leaves the stamp; for who has just verified the files.
absl::Status StampVerified(const std::string& directory, const DatasetManifest& manifest);

}  // namespace llmctl::data
