// What exact deduplication compares: whole documents, their paragraphs, or their lines.
#pragma once

#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace llmctl::data {

enum class TextUnit {
  kDocument,   // all bytes, as they are
  kParagraph,  // between blank lines; white space around it does not count
  kLine,       // up to a newline; white space around it does not count
};

const char* TextUnitName(TextUnit unit);

// Hands on every unit with what is compared of it; units are numbered from 0 in this order. A document is one unit
// even if it is empty; blank lines and paragraphs are units that are never compared: their text is empty.
void ForEachUnit(absl::string_view text, TextUnit unit,
                 absl::FunctionRef<void(uint64_t number, absl::string_view compared)> take);

// The text without the units of these numbers (ascending), each with the newlines behind it. Where the last unit is
// removed, no newline is left at the end either.
std::string RemoveUnits(absl::string_view text, TextUnit unit, absl::Span<const uint64_t> numbers);

}  // namespace llmctl::data
