#include "tests/fuzz/mutator.h"

#include <algorithm>

namespace llmctl::fuzz {
namespace {

// What parsers trip over: ends of ranges, structure, halves of characters, numbers at their limits.
constexpr absl::string_view kPieces[] = {
    "\"", "{", "}", "[", "]", ":", ",", "\\", "\n", "\r", "@", "-", "0", "1e999", "null", "\\ud83d", "\xff", "\xc0\xaf",
    "\xef\xbb\xbf", "\xed\xa0\x80", "18446744073709551615", "-9223372036854775808", "9223372036854775807", "1.5",
    "\xff\xff\xff\xff\xff\xff\xff\xff", "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[", "&a", "*a", "!!", "? ", "- - -"};

void ChangeOnce(std::string& text, SeededRng& rng) {
  size_t at = rng.Below(text.size() + 1);
  size_t length = std::min<size_t>(text.size() - at, 1 + rng.Below(16));
  switch (rng.Below(7)) {
    case 0:
      if (at < text.size()) text[at] ^= 1 << rng.Below(8);
      break;
    case 1:
      if (at < text.size()) text[at] = static_cast<char>(rng.Below(256));
      break;
    case 2:
      text.erase(at, length);
      break;
    case 3:
      text.insert(at, text.substr(at, length));
      break;
    case 4:
      text.insert(at, text.substr(rng.Below(text.size() + 1), length));
      break;
    case 5: {
      absl::string_view piece = kPieces[rng.Below(std::size(kPieces))];
      text.replace(at, rng.Below(2) * length, piece.data(), piece.size());
      break;
    }
    default:
      // Rarely, as it takes away what the other changes work on.
      if (rng.Below(8) == 0) text.resize(at);
  }
}

}  // namespace

std::string Mutate(absl::string_view seed, SeededRng& rng) {
  std::string text(seed);
  for (uint64_t changes = 1 + rng.Below(8); changes > 0; --changes) ChangeOnce(text, rng);
  return text;
}

}  // namespace llmctl::fuzz
