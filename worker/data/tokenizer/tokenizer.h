// Tokenizer: text <-> token ids.
//
// A tokenizer is constant after construction: any thread may call. Encoding needs memory to work in, which is the
// TextEncoder: make one per thread and use it for all documents.
//
//   LLM_ASSIGN_OR_RETURN(std::unique_ptr<Tokenizer> tokenizer, MakeTokenizer("corpus/tokenizer.json"));
//   std::unique_ptr<TextEncoder> encoder = tokenizer->MakeEncoder();
//   for (const Document& document : documents) {
//     encoder->Encode(document.text, tokens);
//     tokens.push_back(tokenizer->end_of_document());
//   }
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace llmctl::data {

// One thread at a time. What it has seen makes it faster, and never changes what it gives.
class TextEncoder {
 public:
  virtual ~TextEncoder() = default;
  // Appends; adds no specials. `text` is valid UTF-8; other bytes are encoded too, as symbols that are no letters.
  virtual void Encode(absl::string_view text, std::vector<int32_t>& out) = 0;
};

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  virtual std::string name() const = 0;
  // Of all that ids depend on: tokenizers with the same digest give the same ids.
  virtual std::string digest() const = 0;
  virtual int vocabulary_size() const = 0;  // specials included
  virtual int end_of_document() const = 0;
  // The tokenizer outlives it.
  virtual std::unique_ptr<TextEncoder> MakeEncoder() const = 0;
  // Specials, and ids that there are not, decode to nothing. The result may end inside a UTF-8 sequence.
  virtual std::string Decode(const std::vector<int32_t>& tokens) const = 0;

  // For a text or two.
  void Encode(absl::string_view text, std::vector<int32_t>& out) const { MakeEncoder()->Encode(text, out); }
};

// "byte": ids 0..255 are bytes, 256 end of document, 257 begin of document, 258 padding, 259 reserved.
// A path that ends in .json: byte-level BPE, from a file as Hugging Face writes it (bpe_tokenizer.h).
// NotFound lists the names there are.
absl::StatusOr<std::unique_ptr<Tokenizer>> MakeTokenizer(absl::string_view name);

}  // namespace llmctl::data
