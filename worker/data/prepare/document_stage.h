// The work on one chunk that needs nothing but the chunk: parse, repair, normalise, hash. Pure, so that chunks can
// be worked on by any number of threads.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "worker/data/normalize/text_normalizer.h"
#include "worker/data/read/chunk_parser.h"
#include "worker/data/read/record.h"

namespace llmctl::data {

struct ContentHash {
  uint64_t high = 0;
  uint64_t low = 0;
  bool operator==(const ContentHash&) const = default;
  template <typename H>
  friend H AbslHashValue(H h, const ContentHash& hash) {
    return H::combine(std::move(h), hash.high, hash.low);
  }
};

// XXH3-128. Equal texts are equal documents: among 2^40 documents two different ones would be confused with a
// chance of 2^-49.
ContentHash HashContent(absl::string_view text);

struct Document {
  Place place;
  std::string text;
  ContentHash hash;
};

struct ChunkDocuments {
  std::vector<Document> documents;  // in input order
  std::vector<Reject> rejects;      // in input order
  Repairs repairs;
  int64_t records = 0;  // lines that are not blank, and text documents
  int64_t blank_lines = 0;
  int64_t bytes_read = 0;
};

class DocumentStage {
 public:
  explicit DocumentStage(const ReadSettings& settings) : parser_(settings), normalizer_(NormalizeSettings()) {}

  ChunkDocuments Run(Chunk& chunk);

 private:
  ChunkParser parser_;
  TextNormalizer normalizer_;
  ParsedChunk parsed_;
};

}  // namespace llmctl::data
