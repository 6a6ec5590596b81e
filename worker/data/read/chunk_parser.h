// From a chunk to its documents: pure, so that chunks can be worked on by any number of threads, one parser each.
//
// One bad record never costs another: whatever is wrong with it becomes a reject with its place, or is repaired and
// counted, as the settings say.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

#include "worker/data/read/json_line.h"
#include "worker/data/read/read_settings.h"
#include "worker/data/read/record.h"

namespace llmctl::data {

// Keeps its buffers between chunks. Not thread-safe.
class ChunkParser {
 public:
  // `settings` are valid.
  explicit ChunkParser(const ReadSettings& settings);

  // Replaces what `out` holds. Takes rejects and rows out of the chunk.
  void Parse(Chunk& chunk, ParsedChunk& out);

 private:
  void ParseLines(const Chunk& chunk, ParsedChunk& out);
  void ParseLine(const Place& place, absl::string_view line, ParsedChunk& out);
  void ParseRecord(const Place& place, absl::string_view record, ParsedChunk& out);
  void ParseText(Chunk& chunk, ParsedChunk& out);
  void ParseRows(Chunk& chunk, ParsedChunk& out);
  void AddParts(ParsedDocument document, ParsedChunk& out) const;
  // False, after noting the reject, if the policy refuses it.
  bool MakeUtf8(const Place& place, std::string& text, ParsedChunk& out) const;

  const ReadSettings settings_;
  JsonLineParser json_;
};

}  // namespace llmctl::data
