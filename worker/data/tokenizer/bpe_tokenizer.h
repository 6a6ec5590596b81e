// Byte-level BPE behind the Tokenizer interface: ids equal to those of Hugging Face's tokenizers, special tokens in
// text aside, which are plain text unless one says otherwise.
//
// Memory: of a tokenizer, about 100 bytes a token and 40 a merge (32,000 tokens: 6 MB); of an encoder, its cache and 24
// bytes per byte of the longest piece (a run of letters, say) that it has met.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "worker/data/tokenizer/added_token_finder.h"
#include "worker/data/tokenizer/merge_table.h"
#include "worker/data/tokenizer/pre_tokenizer.h"
#include "worker/data/tokenizer/tokenizer.h"
#include "worker/data/tokenizer/tokenizer_definition.h"

namespace llmctl::data {

// What becomes of an added token ("<|endoftext|>") that stands in a text.
enum class AddedTokensInText {
  kPlain,          // it is text like any other
  kSpecialsPlain,  // the same if it is special; otherwise its id: Hugging Face's encode_special_tokens = True
  kRecognized,     // its id: Hugging Face's default, for text that was written for the model
};

struct BpeOptions {
  // The special that ends a document. Empty: whichever of "<|endoftext|>" and "<|end_of_text|>" the file has.
  std::string end_of_document;
  AddedTokensInText added_tokens = AddedTokensInText::kSpecialsPlain;
  // What an encoder remembers of pieces it has seen, in bytes.
  size_t encoder_cache = size_t{16} << 20;
};

class BpeTokenizer : public Tokenizer {
 public:
  // `definition` as ParseTokenizerJson or training gives it. NotFound if it has no such end of document.
  static absl::StatusOr<std::unique_ptr<BpeTokenizer>> Create(TokenizerDefinition definition,
                                                              const BpeOptions& options);

  std::string name() const override { return "bpe"; }
  std::string digest() const override { return digest_; }
  int vocabulary_size() const override { return definition_.vocabulary_size(); }
  int end_of_document() const override { return end_of_document_; }
  std::unique_ptr<TextEncoder> MakeEncoder() const override;
  std::string Decode(const std::vector<int32_t>& tokens) const override;

  const TokenizerDefinition& definition() const { return definition_; }

  // The id of the special of this name; NotFound lists those there are.
  absl::StatusOr<int32_t> SpecialId(absl::string_view name) const;

 private:
  friend class BpeEncoder;

  BpeTokenizer(TokenizerDefinition definition, const BpeOptions& options);

  const TokenizerDefinition definition_;
  const size_t encoder_cache_;
  const PreTokenizer pre_tokenizer_;
  const MergeTable merges_;
  std::vector<bool> special_;  // by id
  // Whole pieces that are tokens; filled only if the definition ignores merges for them.
  absl::flat_hash_map<absl::string_view, int32_t> whole_pieces_;
  AddedTokenFinder added_;             // in the text as it came
  AddedTokenFinder added_normalized_;  // in what normalisation made of it
  int32_t end_of_document_ = -1;
  std::string digest_;
};

absl::StatusOr<std::unique_ptr<BpeTokenizer>> ReadBpeTokenizer(const std::string& path, const BpeOptions& options);

}  // namespace llmctl::data
