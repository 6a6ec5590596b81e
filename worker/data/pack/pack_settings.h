// How documents become rows of a packed dataset. See packed_writer.h for what a row is.
#pragma once

#include <cstdint>

#include "absl/status/status.h"

namespace llmctl::data {

enum class LongDocuments {
  kCut,       // pieces of a row each; the last piece is packed with others
  kTruncate,  // the first row_tokens tokens are kept
};

struct PackSettings {
  int sequence_length = 2048;  // a row holds one token more: the target of the last
  LongDocuments long_documents = LongDocuments::kCut;
  // Documents are packed among those of a window of about this many tokens: 4 bytes of memory a token, and about 60 a
  // document. More tokens leave less padding.
  int64_t window_tokens = int64_t{1} << 24;

  int row_tokens() const { return sequence_length + 1; }
  // InvalidArgument lists all faults, by the names that users write.
  absl::Status Validate() const;
};

}  // namespace llmctl::data
