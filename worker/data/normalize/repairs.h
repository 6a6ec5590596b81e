// What was changed between the bytes of the input and the text of the documents, by kind.
#pragma once

#include <cstdint>

namespace llmctl::data {

struct Repairs {
  // By reading.
  int64_t invalid_utf8 = 0;     // sequences replaced
  int64_t lone_surrogates = 0;  // \ud83d without its other half, in JSON
  int64_t byte_order_marks = 0;
  int64_t giants_split = 0;     // documents beyond the limit that were cut into several
  int64_t unusable_ids = 0;     // ids that are neither a string nor a 64-bit integer
  int64_t trailing_garbage = 0;  // .gz and .zst files with bytes after their last member
  int64_t misnamed_files = 0;   // .gz and .zst files that are not compressed
  // By normalising.
  int64_t control_characters = 0;    // dropped
  int64_t carriage_returns = 0;      // CR LF or CR
  int64_t normalized_documents = 0;  // that were not in the form asked for
  int64_t trimmed_documents = 0;     // whose white space was changed

  Repairs& operator+=(const Repairs& other);
  bool operator==(const Repairs&) const = default;
};

}  // namespace llmctl::data
