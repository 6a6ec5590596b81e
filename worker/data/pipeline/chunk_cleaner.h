// From a chunk of input to records for the files of a segment: pure, so that any number of threads can work on chunks.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"

#include "worker/data/normalize/text_normalizer.h"
#include "worker/data/pipeline/cleaner.h"
#include "worker/data/pipeline/corpus_plan.h"
#include "worker/data/pipeline/tally.h"
#include "worker/data/read/chunk_parser.h"
#include "worker/data/read/read_settings.h"
#include "worker/data/read/record.h"

namespace llmctl::data {

// What a chunk became.
struct CleanedChunk {
  absl::Status status;
  int64_t piece = 0;
  Position end;
  int64_t file_bytes = 0;
  int64_t text_bytes = 0;   // read, after normalisation
  uint64_t kept_bytes = 0;  // of the documents' texts
  std::string documents;   // records, each with its length before it as a varint
  std::string verdicts;
  Tally tally;
  PerplexitySketch perplexities;  // of the documents
};

// Scratch of one thread. `plan` and `rules` outlive it.
class ChunkCleaner {
 public:
  ChunkCleaner(const CorpusPlan& plan, const CleaningRules& rules);

  CleanedChunk Run(Chunk& chunk);

 private:
  ChunkParser& ParserOf(int source);
  absl::Status AddDocument(const ParsedDocument& document, const std::string& source, CleanedChunk& out);
  void AddFault(const Reject& reject, const std::string& source, CleanedChunk& out);
  void CountDropped(const VerdictRecord& verdict, const std::string& source, absl::string_view text,
                    CleanedChunk& out);

  const CorpusPlan& plan_;
  const TextNormalizer normalizer_;
  Cleaner cleaner_;
  std::vector<std::unique_ptr<ChunkParser>> parsers_;  // by source
  ParsedChunk parsed_;
  CleanedDocument cleaned_;
  std::string normalized_;
  std::string text_;
  std::string id_;
  std::string record_;
};

// How a source is read. The configuration is valid.
absl::StatusOr<ReadSettings> ReadSettingsOf(const contract::CorpusConfig& config, int source);
NormalizeSettings NormalizeSettingsOf(const contract::NormalizeConfig& config);

}  // namespace llmctl::data
