// Which pieces of a text (lines, paragraphs) have come before.
//
// One open-addressing table that is kept from document to document: a slot of an earlier one is told by its number.
// Equal hashes are compared byte by byte. Scratch of one thread; 32 bytes per distinct piece of the largest document.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"

namespace llmctl::data {

class PieceSet {
 public:
  PieceSet() : slots_(64) {}

  // Forgets all pieces.
  void Begin();
  // Whether `piece` is new. It must live until the next Begin().
  bool Add(absl::string_view piece);

 private:
  struct Slot {
    uint64_t hash = 0;
    const char* data = nullptr;
    uint32_t size = 0;
    uint32_t set = 0;  // the number of the Begin() it was added after
  };

  void Grow();

  std::vector<Slot> slots_;  // a power of two
  size_t count_ = 0;
  uint32_t set_ = 1;
};

}  // namespace llmctl::data
