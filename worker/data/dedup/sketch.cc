#include "worker/data/dedup/sketch.h"

#include <algorithm>
#include <cstring>

#include "common/base/digest.h"

namespace llmctl::data {
namespace {

constexpr size_t kChecksumBytes = 4;
constexpr size_t kHeadBytes = 8;

uint32_t ChecksumOf(absl::Span<const uint8_t> sketch) {
  const char* behind = reinterpret_cast<const char*>(sketch.data()) + kChecksumBytes;
  return static_cast<uint32_t>(Fingerprint64({behind, sketch.size() - kChecksumBytes}));
}

}  // namespace

void WriteSketch(absl::Span<const uint64_t> least, int64_t shingles, absl::Span<uint8_t> out) {
  uint32_t counted = static_cast<uint32_t>(std::min<int64_t>(shingles, UINT32_MAX));
  std::memcpy(out.data() + kChecksumBytes, &counted, sizeof counted);
  for (size_t i = 0; i < least.size(); ++i) {
    out[kHeadBytes + i] = shingles > 0 ? static_cast<uint8_t>((least[i] * 0x9e3779b97f4a7c15) >> 56) : 0;
  }
  uint32_t checksum = ChecksumOf(out);
  std::memcpy(out.data(), &checksum, sizeof checksum);
}

bool SketchIsWhole(absl::Span<const uint8_t> sketch) {
  uint32_t checksum;
  std::memcpy(&checksum, sketch.data(), sizeof checksum);
  return checksum == ChecksumOf(sketch);
}

bool SketchHasSignature(absl::Span<const uint8_t> sketch) {
  uint32_t shingles;
  std::memcpy(&shingles, sketch.data() + kChecksumBytes, sizeof shingles);
  return shingles > 0;
}

double EstimateSketchJaccard(absl::Span<const uint8_t> a, absl::Span<const uint8_t> b) {
  size_t equal = 0;
  for (size_t i = kHeadBytes; i < a.size(); ++i) equal += a[i] == b[i];
  double share = static_cast<double>(equal) / (a.size() - kHeadBytes);
  return std::max(0.0, (share * 256 - 1) / 255);
}

}  // namespace llmctl::data
