// From the bytes of a document to the text that is trained on.
//
// Text from the world is dirty as a rule, so nothing here fails: invalid UTF-8 becomes U+FFFD (as the WHATWG
// encoding standard does, one for each maximal part of a sequence), a leading byte order mark goes, CR LF and CR
// become LF, control characters other than tab and newline go, and the rest is put into Unicode normalisation form
// C. What was changed is counted.
#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace llmctl::data {

struct Repairs {
  int64_t invalid_utf8 = 0;     // sequences replaced
  int64_t lone_surrogates = 0;  // \ud83d without its other half, in JSON
  int64_t byte_order_marks = 0;
  int64_t control_characters = 0;    // dropped
  int64_t carriage_returns = 0;      // CR LF or CR
  int64_t normalized_documents = 0;  // that were not in form C

  Repairs& operator+=(const Repairs& other);
};

// Offset of the first byte that is not UTF-8, or npos.
size_t FindInvalidUtf8(absl::string_view bytes);

// Replaces what is not UTF-8 by U+FFFD; returns how many sequences were replaced.
int64_t ReplaceInvalidUtf8(std::string& text);

// All the rest, on valid UTF-8.
void NormalizeText(std::string& text, Repairs& repairs);

// Whether there is anything but ASCII white space, U+00A0, U+3000 and U+FEFF.
bool HasContent(absl::string_view text);

}  // namespace llmctl::data
