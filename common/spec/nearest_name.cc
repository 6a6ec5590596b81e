#include "common/spec/nearest_name.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/ascii.h"

namespace llmctl::spec {
namespace {

// Longer names are nobody's typing error, and the distance is quadratic.
constexpr size_t kNameBytesMax = 64;

std::string Letters(absl::string_view name) {
  std::string out;
  for (char c : name) {
    if (c != '_' && c != '-') out.push_back(absl::ascii_tolower(c));
  }
  return out;
}

// Edits (insert, remove, replace, swap of neighbours) that turn `a` into `b`.
size_t EditDistance(absl::string_view a, absl::string_view b) {
  std::vector<size_t> before(b.size() + 1), above(b.size() + 1), row(b.size() + 1);
  std::iota(above.begin(), above.end(), 0);
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before = above;
    above = row;
  }
  return above[b.size()];
}

}  // namespace

std::optional<std::string> NearestName(absl::string_view name, const std::vector<std::string>& candidates) {
  std::string letters = Letters(name);
  if (letters.size() > kNameBytesMax) return std::nullopt;
  std::optional<std::string> nearest;
  size_t fewest = std::max<size_t>(1, letters.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    size_t edits = EditDistance(letters, Letters(candidate));
    if (edits < fewest) {
      fewest = edits;
      nearest = candidate;
    }
  }
  return nearest;
}

}  // namespace llmctl::spec
