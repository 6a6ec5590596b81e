// A document on its way through the pipeline, and what became of it, as records of block files.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace llmctl::data {

// Where a document was read. `line` counts from 1 in the piece of the file that its task read; the index of the audit
// adds the lines before (audit.h). Parquet: rows.
struct DocumentPlace {
  int64_t file = 0;
  int64_t line = 0;
  int64_t byte = 0;
};

// Why a document was dropped. An empty reason: it was kept.
struct Outcome {
  std::string reason;
  double measured = 0;
  double threshold = 0;
  bool kept() const { return reason.empty(); }
};

// A document that the cleaning stages kept.
struct DocumentRecord {
  DocumentPlace place;
  absl::string_view id;
  absl::string_view language;
  double perplexity = 0;  // 0: not scored
  absl::string_view text;
};
void EncodeDocument(const DocumentRecord& document, std::string& out);
// Views into `bytes`. DataLoss if they are no document.
absl::Status DecodeDocument(absl::string_view bytes, DocumentRecord& document);

// A line of the audit: one for every record that was read, in order.
struct VerdictRecord {
  DocumentPlace place;
  absl::string_view id;
  absl::string_view language;
  double language_score = 0;
  double perplexity = 0;  // 0: not scored
  uint64_t bytes = 0;  // of the text as it was read
  bool fault = false;  // it could not be read: the outcome says why, and `detail` what the reader says
  absl::string_view detail;
  Outcome outcome;     // of reading and the cleaning stages
  absl::string_view measurements;  // of the quality filters (measurement_record.h), where they are kept
};
void EncodeVerdict(const VerdictRecord& verdict, std::string& out);
absl::Status DecodeVerdict(absl::string_view bytes, VerdictRecord& verdict);

}  // namespace llmctl::data
