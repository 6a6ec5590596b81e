// Pre-tokenisers: text is cut into pieces, and tokens never cross from one piece into the next.
//
// The peers write them as regular expressions with ordered alternatives; here each is a function from a position to
// the end of the piece that begins there. The alternatives look only forward, so a piece depends on nothing before it.
//
//   gpt2    's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
//   llama3  (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*
//           |\s*[\r\n]+|\s+(?!\S)|\s+
//   qwen    as llama3, but \p{N} for \p{N}{1,3}
//
// Every character belongs to a piece. Pure, constant after construction: any thread may call.
#pragma once

#include <cstddef>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"

#include "worker/data/tokenizer/char_class.h"

namespace llmctl::data {

enum class Pattern { kGpt2, kLlama3, kQwen };

// "gpt2", "llama3", "qwen".
absl::string_view PatternName(Pattern pattern);
absl::optional<Pattern> PatternNamed(absl::string_view name);

// The regular expression as Hugging Face's files write it.
absl::string_view PatternRegex(Pattern pattern);

// The pattern that `regex` is, in any spelling known to mean the same.
absl::optional<Pattern> PatternOfRegex(absl::string_view regex);

class PreTokenizer {
 public:
  explicit PreTokenizer(Pattern pattern) : pattern_(pattern) {}

  Pattern pattern() const { return pattern_; }

  // The end of the piece that begins at `at`, which is before `end`.
  const char* PieceEnd(const char* at, const char* end) const {
    return pattern_ == Pattern::kGpt2 ? Gpt2PieceEnd(at, end) : Llama3PieceEnd(at, end);
  }

 private:
  const char* Gpt2PieceEnd(const char* at, const char* end) const;
  const char* Llama3PieceEnd(const char* at, const char* end) const;
  const char* RunEnd(CharClass char_class, const char* at, const char* end) const;
  const char* SpacesEnd(const char* at, const char* end) const;
  const char* SpacesEndAfterLines(const char* at, const char* end) const;

  Pattern pattern_;
  CharClassTable classes_;
};

}  // namespace llmctl::data
