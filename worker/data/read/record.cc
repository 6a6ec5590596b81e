#include "worker/data/read/record.h"

namespace llmctl::data {

absl::string_view ReasonName(Reason reason) {
  switch (reason) {
    case Reason::kInvalidUtf8: return "invalid_utf8";
    case Reason::kLoneSurrogate: return "lone_surrogate";
    case Reason::kInvalidJson: return "invalid_json";
    case Reason::kTrailingContent: return "trailing_content";
    case Reason::kNotAnObject: return "not_an_object";
    case Reason::kFieldMissing: return "text_missing";
    case Reason::kFieldRepeated: return "text_repeated";
    case Reason::kFieldNull: return "text_null";
    case Reason::kFieldNotAString: return "text_not_a_string";
    case Reason::kEmpty: return "empty";
    case Reason::kLineTooLong: return "line_too_long";
    case Reason::kDocumentTooLong: return "document_too_long";
    case Reason::kUtf16File: return "utf16_file";
    case Reason::kCompressedFile: return "compressed_file";
    case Reason::kTruncatedFile: return "truncated_file";
    case Reason::kCorruptFile: return "corrupt_file";
    case Reason::kWindowTooLarge: return "window_too_large";
  }
  return "unknown";
}

bool IsDamage(Reason reason) {
  return reason == Reason::kTruncatedFile || reason == Reason::kCorruptFile || reason == Reason::kWindowTooLarge;
}

void ParsedChunk::Clear() {
  documents.clear();
  rejects.clear();
  repairs = {};
  records = 0;
  blank_lines = 0;
  file_bytes = 0;
  strings.Clear();
  rows.reset();
}

}  // namespace llmctl::data
