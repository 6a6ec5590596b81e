// Eight bits of each value of a signature: enough to estimate how similar two documents are, in an eighth of the space.
//
// Two different values share their eight bits once in 256, which the estimate takes out again; its standard deviation
// stays that of full signatures (signer.h) within 1 % above J = 0.2. A record begins with a checksum, as sketches are
// read singly.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"

namespace llmctl::data {

inline size_t SketchBytes(size_t hashes) { return 8 + hashes; }

// Fills `out` of SketchBytes(least.size()); no shingles is a document without a signature, whatever `least`.
void WriteSketch(absl::Span<const uint64_t> least, int64_t shingles, absl::Span<uint8_t> out);

bool SketchIsWhole(absl::Span<const uint8_t> sketch);
bool SketchHasSignature(absl::Span<const uint8_t> sketch);

// Of documents with a signature.
double EstimateSketchJaccard(absl::Span<const uint8_t> a, absl::Span<const uint8_t> b);

}  // namespace llmctl::data
