// A short piece of text as a few words of memory, so that comparing and hashing it cost nothing like a string's.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace llmctl::data {

// Of a piece of up to `kBytes` bytes, one less than a multiple of 8: the bytes, zeros after them, and the length in the
// last byte, so that zeros within the piece count.
template <size_t kBytes>
struct PieceKey {
  static_assert(kBytes % 8 == 7 && kBytes < 256);
  static constexpr size_t kBytesMax = kBytes;
  static constexpr size_t kWords = (kBytes + 1) / 8;

  std::array<uint64_t, kWords> words{};  // of no piece: the length is 0

  // Up to kBytes + 1 bytes from `piece` on may be read if they are before `readable_end`.
  static PieceKey Of(const char* piece, size_t bytes, const char* readable_end) {
    PieceKey key;
    if (static_cast<size_t>(readable_end - piece) > kBytes) {
      std::memcpy(key.words.data(), piece, kBytes + 1);
      for (size_t i = 0; i < kWords; ++i) key.words[i] &= Mask(bytes, 8 * i);
    } else {
      std::memcpy(key.words.data(), piece, bytes);
    }
    key.words[kWords - 1] |= uint64_t{bytes} << 56;
    return key;
  }

  size_t bytes() const { return words[kWords - 1] >> 56; }
  const char* data() const { return reinterpret_cast<const char*>(words.data()); }

  bool operator==(const PieceKey& other) const {
    uint64_t difference = 0;
    for (size_t i = 0; i < kWords; ++i) difference |= words[i] ^ other.words[i];
    return difference == 0;
  }

  // The high bits are the good ones.
  uint64_t Hash() const {
    uint64_t hash = words[0];
    for (size_t i = 1; i < kWords; ++i) hash = (hash ^ words[i] * 0x9FB21C651E98DF25u) * 0x9E3779B97F4A7C15u;
    return hash;
  }

 private:
  // What of the word that begins at byte `from` belongs to a piece of so many bytes.
  static uint64_t Mask(size_t bytes, size_t from) {
    if (bytes >= from + 8) return ~uint64_t{0};
    return bytes > from ? (uint64_t{1} << (8 * (bytes - from))) - 1 : 0;
  }
};

}  // namespace llmctl::data
