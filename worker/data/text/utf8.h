// Code points of valid UTF-8, one at a time, in both directions. The text has been checked before (ReplaceInvalidUtf8):
// nothing is checked again here.
#pragma once

#include <cstdint>
#include <cstring>

#include "absl/strings/string_view.h"

namespace llmctl::data {

// The code point at `at`, which moves behind it.
inline char32_t NextCodePoint(const char*& at) {
  auto byte = [&](int i) { return static_cast<char32_t>(static_cast<uint8_t>(at[i])); };
  char32_t first = byte(0);
  if (first < 0x80) {
    at += 1;
    return first;
  }
  if (first < 0xe0) {
    char32_t code = (first & 0x1f) << 6 | (byte(1) & 0x3f);
    at += 2;
    return code;
  }
  if (first < 0xf0) {
    char32_t code = (first & 0x0f) << 12 | (byte(1) & 0x3f) << 6 | (byte(2) & 0x3f);
    at += 3;
    return code;
  }
  char32_t code = (first & 0x07) << 18 | (byte(1) & 0x3f) << 12 | (byte(2) & 0x3f) << 6 | (byte(3) & 0x3f);
  at += 4;
  return code;
}

inline bool IsContinuation(char byte) { return (static_cast<uint8_t>(byte) & 0xc0) == 0x80; }

// The code point that ends at `at`, which moves before it.
inline char32_t PreviousCodePoint(const char*& at) {
  do {
    --at;
  } while (IsContinuation(*at));
  const char* start = at;
  return NextCodePoint(start);
}

// Eight bytes at a time: a continuation byte has its highest bit and not the next.
inline int64_t CountCodePoints(absl::string_view text) {
  constexpr uint64_t kHighBits = 0x8080808080808080;
  int64_t continuations = 0;
  size_t at = 0;
  for (; at + sizeof(uint64_t) <= text.size(); at += sizeof(uint64_t)) {
    uint64_t bytes;
    std::memcpy(&bytes, text.data() + at, sizeof bytes);
    // One bit in each such byte, summed into the highest byte.
    continuations += ((bytes & ~(bytes << 1) & kHighBits) >> 7) * 0x0101010101010101 >> 56;
  }
  for (; at < text.size(); ++at) continuations += IsContinuation(text[at]);
  return static_cast<int64_t>(text.size()) - continuations;
}

}  // namespace llmctl::data
