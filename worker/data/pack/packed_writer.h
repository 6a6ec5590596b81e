// Writes a split whose samples are rows of whole documents, rather than windows that begin and end anywhere.
//
// A row holds at most sequence_length + 1 tokens (the last is only a target): pieces of documents, one after another.
// A document that fits a row is one piece, never cut. A longer one is cut into pieces of a whole row each and a rest,
// which is packed with others (or all but its first row is left out: truncation). Padding is not written: the loader
// pads rows, and padding is no target.
//
//   PackSettings settings{.sequence_length = 2048};
//   LLM_ASSIGN_OR_RETURN(auto writer, CreatePackedWriter(directory, "train", vocabulary_size, settings));
//   LLM_RETURN_IF_ERROR(writer->BeginGroup("wiki/en"));      // rows hold documents of one group
//   LLM_RETURN_IF_ERROR(writer->AddDocument(tokens));        // with its end-of-document token
//   LLM_ASSIGN_OR_RETURN(SplitInfo split, writer->Finish());
//   manifest.packing = PackingInfo{settings.row_tokens(), end_of_document};
//
// Documents are packed by best-fit decreasing (best_fit.h) among those of a window of window_tokens; a group's last
// window is what is left. Rows come in the order of the first document in them, and so do the pieces of a row: a split
// read from the start is in the order of the input, within a window. All of it depends on the lengths in their order
// and on the settings alone.
//
// The first token of a row is no target, as nothing comes before it; in concat mode every token is one.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"

#include "worker/data/pack/pack_settings.h"
#include "worker/data/shards/dataset.h"

namespace llmctl::data {

// Memory: 4 bytes a token of window_tokens and of the longest document, and about 60 a document of a window.
absl::StatusOr<std::unique_ptr<ShardWriter>> CreatePackedWriter(const std::string& directory, const std::string& split,
                                                                int vocabulary_size, const PackSettings& settings);

}  // namespace llmctl::data
