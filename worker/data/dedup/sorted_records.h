// What deduplication sorts (spill/external_sort.h).
#pragma once

#include <compare>
#include <cstdint>

namespace llmctl::data {

// (band key, document), or (later document, earlier document).
struct KeyedDocument {
  uint64_t key;
  uint64_t document;

  auto operator<=>(const KeyedDocument&) const = default;
};

// A text by its 128-bit hash, and where it stands.
struct TextKey {
  uint64_t high;
  uint64_t low;
  uint64_t document;
  uint64_t unit;  // of the document: a line or paragraph

  auto operator<=>(const TextKey&) const = default;
  bool SameText(const TextKey& other) const { return high == other.high && low == other.low; }
};

}  // namespace llmctl::data
