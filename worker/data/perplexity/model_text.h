// From a document to the lines of words that a language model is trained on and asked about.
//
// What cc_net calls a line is a piece of the text between "\n"; each is a sentence to the model. A word is what stands
// between white space (ASCII's and NUL), as for KenLM; or a piece of a byte-level BPE tokenizer, written in the
// byte-level alphabet ("Ġthe"), which has no white space. CCNet itself uses SentencePiece's pieces.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

#include "worker/data/tokenizer/bpe_tokenizer.h"

namespace llmctl::data {

enum class ModelUnit { kWords, kPieces };

struct ModelTextSettings {
  ModelUnit unit = ModelUnit::kWords;
  bool normalize = true;  // NormalizeLine
  // cc_net's DocLM scores a blank line as a sentence without words, but the pipeline it stands in has joined all lines
  // before: a document's blank lines do not count there.
  bool skip_blank_lines = true;

  bool operator==(const ModelTextSettings&) const = default;
};

// Constant after construction; shared by all threads. `tokenizer` outlives it; null unless the unit is pieces.
class ModelText {
 public:
  ModelText(const ModelTextSettings& settings, const BpeTokenizer* tokenizer);

  const ModelTextSettings& settings() const { return settings_; }

 private:
  friend class ModelTextReader;

  const ModelTextSettings settings_;
  const BpeTokenizer* const tokenizer_;
  std::vector<std::string> pieces_;  // by id, in the byte-level alphabet
};

// One per thread; keeps its buffers.
class ModelTextReader {
 public:
  // `text` outlives it.
  explicit ModelTextReader(const ModelText& text);

  void Start(absl::string_view document);  // which outlives the reading of its lines
  // The words of the next line; false after the last. They hold until the next line is read.
  bool NextLine(std::vector<absl::string_view>& words);

 private:
  void Split(absl::string_view line, std::vector<absl::string_view>& words);

  const ModelText& text_;
  absl::string_view rest_;
  bool more_ = false;
  std::string normalized_;
  std::unique_ptr<TextEncoder> encoder_;
  std::vector<int32_t> ids_;
};

}  // namespace llmctl::data
