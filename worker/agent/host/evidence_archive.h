// Where the archives of llm-evidence lie, and reading them piece by piece as logs are read. Thread-safe.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

#include "common/base/ids.h"
#include "worker/agent/host/rank_log.h"

namespace llmctl::agent {

// The stream's name where logs are asked for.
inline constexpr char kEvidenceStream[] = "evidence";
// Archives kept on a host; the oldest goes first.
inline constexpr int kEvidenceMax = 32;

// "<job>-a<attempt>-g<generation>.tar"
std::string EvidenceFileName(const GenerationId& generation);

// NotFound: there is none (any more, or yet).
absl::StatusOr<LogPiece> ReadEvidence(const std::string& directory, const GenerationId& generation, int64_t offset,
                                      int64_t bytes_max);

}  // namespace llmctl::agent
