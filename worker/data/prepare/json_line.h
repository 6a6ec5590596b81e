// One line of a .jsonl file: an object with the document in one of its fields.
#pragma once

#include <memory>
#include <string>

#include "absl/strings/string_view.h"

#include "worker/data/prepare/text_normalizer.h"

namespace llmctl::data {

// Why a line or file gave no document. Names are stable: they stand in manifests and reject files.
enum class Reason {
  kInvalidUtf8,  // only under the policy to reject
  kInvalidJson,
  kTrailingContent,  // more than one value on a line
  kNotAnObject,
  kFieldMissing,
  kFieldRepeated,
  kFieldNull,
  kFieldNotAString,
  kEmpty,  // no text but white space
  kLineTooLong,
  kUtf16File,
  kDuplicate,  // the same text came before
};
absl::string_view ReasonName(Reason reason);

struct LineText {
  bool ok = false;
  std::string text;  // valid UTF-8, not yet normalised
  Reason reason = Reason::kInvalidJson;
  std::string detail;  // what the parser says
};

// Keeps its buffers between lines. Not thread-safe.
class JsonLineParser {
 public:
  explicit JsonLineParser(std::string text_field);
  ~JsonLineParser();

  // `line` is valid UTF-8. Halves of surrogate pairs become U+FFFD and are counted.
  LineText Parse(absl::string_view line, Repairs& repairs);

 private:
  struct Simd;
  LineText ParseWithBigNumbers(absl::string_view line) const;

  const std::string text_field_;
  std::unique_ptr<Simd> simd_;
};

// Replaces each \uD800-\uDFFF escape that is no half of a pair by \uFFFD; returns how many there were.
int64_t ReplaceLoneSurrogates(std::string& line);

}  // namespace llmctl::data
