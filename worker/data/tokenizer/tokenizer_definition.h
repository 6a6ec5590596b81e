// What a byte-level BPE tokenizer is, as data: read from or written to Hugging Face's tokenizer.json, made by training.
//
// ParseTokenizerJson is strict: what BpeTokenizer does not do exactly as Hugging Face's library does is refused with
// the path in the JSON, e.g. "tokenizer.json: pre_tokenizer.type: ...". Accepted are
//   model          BPE over bytes: all 256 in the vocabulary, no dropout, prefixes or suffixes, no byte_fallback
//   pre_tokenizer  ByteLevel with its regular expression; or Sequence of Split with one of Pattern's and ByteLevel
//   normalizer     none, NFC
//   post_processor any that only adds specials or moves offsets: it is not run, encoding adds no specials
//   decoder        ByteLevel
//   added_tokens   without lstrip, rstrip, single_word
// docs/data/tokenizer.md has the whole list.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "worker/data/tokenizer/pre_tokenizer.h"

namespace llmctl::data {

// Two tokens that become one; the order of a definition's merges is their rank.
struct Merge {
  int32_t left;
  int32_t right;
  int32_t result;
};

// A token that is looked for in the text as it is, before everything else.
struct AddedToken {
  std::string content;
  int32_t id;
  bool special;     // a mark that the model is told by, not text: decodes to nothing
  bool normalized;  // looked for in the normalised text
};

struct TokenizerDefinition {
  Pattern pattern = Pattern::kGpt2;
  bool nfc = false;
  // A piece that is a token as a whole is that token, whatever the merges say.
  bool ignore_merges = false;
  int32_t model_tokens = 0;          // ids below are the model's own
  std::vector<std::string> tokens;   // by id: the bytes; of an added token, its content
  std::vector<Merge> merges;         // by rank
  std::vector<AddedToken> added;     // by id

  int vocabulary_size() const { return static_cast<int>(tokens.size()); }
};

// InvalidArgument names the place in the JSON; `what` names the file in messages.
absl::StatusOr<TokenizerDefinition> ParseTokenizerJson(absl::string_view text, absl::string_view what);

// In the layout of Hugging Face's own save().
std::string TokenizerJsonText(const TokenizerDefinition& definition);

}  // namespace llmctl::data
