// One line of JSON: an object with the document in one of its fields, which may lie in objects within it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

#include "worker/data/read/read_settings.h"
#include "worker/data/read/record.h"

namespace llmctl::data {

struct LineText {
  bool ok = false;
  absl::string_view text;  // valid UTF-8, not yet normalised; holds until the next line is parsed
  absl::string_view id;    // likewise; empty: none that can be used
  Reason reason = Reason::kInvalidJson;
  std::string detail;  // what the parser says
  int64_t byte = 0;    // of the line: where the fault is, if that is known
  bool not_utf8 = false;
};

// Keeps its buffers between lines. Not thread-safe.
class JsonLineParser {
 public:
  explicit JsonLineParser(const ReadSettings& settings);
  ~JsonLineParser();

  // Bytes behind the line's last that can be read, whatever they hold. A std::string with a capacity of so much more
  // than its size is enough.
  static const size_t kPadding;

  // What is no UTF-8, and halves of surrogate pairs, are treated as the settings say.
  LineText Parse(absl::string_view line, Repairs& repairs);

 private:
  struct Simd;
  LineText ParsePadded(absl::string_view line, Repairs& repairs);
  LineText ParseRepaired(absl::string_view line, Repairs& repairs);
  LineText ParseWithBigNumbers(absl::string_view line, Repairs& repairs);

  const ReadSettings settings_;
  const std::vector<std::string> text_path_;
  const std::vector<std::string> id_path_;
  std::unique_ptr<Simd> simd_;
};

// Replaces each \uD800-\uDFFF escape that is no half of a pair by \uFFFD; returns how many there were.
int64_t ReplaceLoneSurrogates(std::string& line);

}  // namespace llmctl::data
