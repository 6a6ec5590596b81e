// A short piece of text as two words, so that comparing and hashing it cost nothing like a string's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace llmctl::data {

// The piece's bytes, zeros after them, and its length in the last byte: zeros within it count.
struct PieceKey {
  static constexpr size_t kBytesMax = 15;

  uint64_t low = 0;
  uint64_t high = 0;  // of no piece: the length is 0

  // `piece` has at most kBytesMax bytes; up to 16 bytes from there on may be read if they are before `readable_end`.
  static PieceKey Of(const char* piece, size_t bytes, const char* readable_end) {
    PieceKey key;
    if (readable_end - piece >= 16) {
      std::memcpy(&key, piece, 16);
      key.low &= LowBytes(bytes);
      key.high &= bytes > 8 ? LowBytes(bytes - 8) : 0;
    } else {
      std::memcpy(&key, piece, bytes);
    }
    key.high |= uint64_t{bytes} << 56;
    return key;
  }

  size_t bytes() const { return high >> 56; }
  // As it lies in memory, for bytes() of it.
  const char* data() const { return reinterpret_cast<const char*>(this); }

  bool operator==(const PieceKey& other) const { return ((low ^ other.low) | (high ^ other.high)) == 0; }

  // The high bits are the good ones.
  uint64_t Hash() const { return (low ^ high * 0x9FB21C651E98DF25u) * 0x9E3779B97F4A7C15u; }

 private:
  static uint64_t LowBytes(size_t bytes) { return bytes >= 8 ? ~uint64_t{0} : (uint64_t{1} << (8 * bytes)) - 1; }
};

}  // namespace llmctl::data
