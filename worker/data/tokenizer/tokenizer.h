// Tokenizer: text <-> token ids. Here the byte tokenizer; BPE comes behind the same interface.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace llmctl::data {

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  virtual std::string name() const = 0;
  virtual int vocabulary_size() const = 0;  // specials included
  virtual int end_of_document() const = 0;
  // Appends; adds no specials.
  virtual void Encode(absl::string_view text, std::vector<int32_t>& out) const = 0;
  // Specials decode to nothing. The result may end inside a UTF-8 sequence.
  virtual std::string Decode(const std::vector<int32_t>& tokens) const = 0;
};

// "byte": ids 0..255 are bytes, 256 end of document, 257 begin of document, 258 padding, 259 reserved.
// NotFound lists the names there are.
absl::StatusOr<std::unique_ptr<Tokenizer>> MakeTokenizer(absl::string_view name);

}  // namespace llmctl::data
