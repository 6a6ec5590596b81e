// The work on one chunk that needs nothing but the chunk: parse, repair, normalise, hash. Pure, so that chunks can
// be worked on by any number of threads.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "worker/data/prepare/chunk_reader.h"
#include "worker/data/prepare/json_line.h"
#include "worker/data/prepare/text_normalizer.h"

namespace llmctl::data {

enum class InvalidUtf8Policy { kReplace, kReject };

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
  DocumentStage(std::string text_field, InvalidUtf8Policy policy);

  ChunkDocuments Run(Chunk& chunk);

 private:
  void RunLine(const Place& place, absl::string_view line, ChunkDocuments& out);
  void RunRecord(const Place& place, absl::string_view line, ChunkDocuments& out);
  void RunText(Chunk& chunk, ChunkDocuments& out);
  // False, after noting the reject, if the policy refuses it.
  bool MakeUtf8(const Place& place, std::string& text, ChunkDocuments& out) const;

  const InvalidUtf8Policy policy_;
  JsonLineParser parser_;
  std::string line_;
};

}  // namespace llmctl::data
