// What BpeTokenizer encodes with: the cache of pieces and the memory that merging works in. One per thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

#include "worker/data/tokenizer/bpe_tokenizer.h"
#include "worker/data/tokenizer/piece_cache.h"
#include "worker/data/tokenizer/piece_merger.h"
#include "worker/data/tokenizer/tokenizer.h"

namespace llmctl::data {

class BpeEncoder : public TextEncoder {
 public:
  // `tokenizer` outlives the encoder.
  explicit BpeEncoder(const BpeTokenizer& tokenizer);

  void Encode(absl::string_view text, std::vector<int32_t>& out) override;

 private:
  void EncodeNormalized(absl::string_view text, std::vector<int32_t>& out);
  void EncodePieces(absl::string_view text, std::vector<int32_t>& out);
  template <typename Cache>
  size_t EncodePiece(Cache& cache, absl::string_view piece, const char* text_end, int32_t* out);
  size_t EncodeNewPiece(absl::string_view piece, int32_t* out);

  const BpeTokenizer& tokenizer_;
  // Nearly all pieces are short in scripts of one byte a letter; in others half of the words are not.
  PieceCache<15, 4> short_pieces_;
  PieceCache<31, 8> longer_pieces_;
  PieceMerger merger_;
  std::vector<int32_t> block_;  // ids on their way to the caller's vector
  std::string normalized_;
};

}  // namespace llmctl::data
