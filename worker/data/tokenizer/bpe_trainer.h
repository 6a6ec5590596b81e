// Training of byte-level BPE: from words and their counts to a vocabulary and its merges.
//
// Again and again the most frequent pair of neighbours becomes a token, until the vocabulary is full; of pairs that are
// equally frequent the one with the lower ids (left, then right). That is the rule of Hugging Face's BpeTrainer with
// the byte alphabet, and its bookkeeping is kept too, so that ids and merges are the same. They do not depend on the
// order of words.
//
//   WordCounts words(Pattern::kGpt2, /*nfc=*/false);
//   for (const Document& document : documents) words.AddText(document.text);
//   LLM_ASSIGN_OR_RETURN(TokenizerDefinition definition, TrainBpe(words, {.vocabulary_size = 32000}));
//   LLM_RETURN_IF_ERROR(WriteFileAtomically("tokenizer.json", TokenizerJsonText(definition)));
//
// Memory beside the counts: 20 bytes per byte of distinct words, and 50 per pair that ever came about.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "worker/data/tokenizer/tokenizer_definition.h"
#include "worker/data/tokenizer/word_counts.h"

namespace llmctl::data {

struct TrainOptions {
  int vocabulary_size = 32000;  // specials and the 256 bytes included
  int64_t frequency_min = 0;    // no pair that occurs less often becomes a token
  std::vector<std::string> specials = {"<|endoftext|>"};  // have the first ids
};

// The vocabulary is smaller than asked for when all words have become tokens. InvalidArgument if options contradict
// each other or the words; ResourceExhausted for more than 4 GB of distinct words.
absl::StatusOr<TokenizerDefinition> TrainBpe(const WordCounts& words, const TrainOptions& options);

}  // namespace llmctl::data
