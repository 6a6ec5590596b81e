#include "worker/engine/checkpoint/manifest.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"

#include "common/base/digest.h"

namespace llmctl::checkpoint {

std::string ManifestDigest(absl::string_view json) { return Sha256(json); }

bool IsTensorFileName(absl::string_view name) {
  constexpr absl::string_view kExtension = ".safetensors";
  if (!absl::EndsWith(name, kExtension) || name.size() == kExtension.size() || name.size() > 200) return false;
  return std::all_of(name.begin(), name.end(),
                     [](char c) {
                       return absl::ascii_islower(c) || absl::ascii_isdigit(c) || c == '.' || c == '_' || c == '-';
                     }) &&
         name.front() != '.';
}

}  // namespace llmctl::checkpoint
