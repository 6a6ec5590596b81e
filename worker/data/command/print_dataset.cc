#include "worker/data/command/print_dataset.h"

#include <string>

#include "absl/strings/str_format.h"

namespace llmctl::data {
namespace {

double Percent(int64_t part, int64_t whole) {
  return whole > 0 ? 100 * static_cast<double>(part) / static_cast<double>(whole) : 0;
}

void PrintPacked(const PackedFigures& packed, const SplitInfo& split, const PackingInfo& packing) {
  absl::PrintF("    packed     %12d rows of %d tokens, %.3f%% padding\n", packed.rows, packing.row_tokens,
               Percent(packed.padding_tokens, packed.rows * packing.row_tokens));
  absl::PrintF("    cut        %12d documents longer than a row (%.2f%%)\n", packed.cut_documents,
               Percent(packed.cut_documents, split.documents));
  if (packed.truncated_documents == 0) return;
  absl::PrintF("    truncated  %12d documents, %d tokens left out (%.2f%%)\n", packed.truncated_documents,
               packed.truncated_tokens, Percent(packed.truncated_tokens, packed.truncated_tokens + split.tokens));
}

}  // namespace

void PrintSplits(const DatasetManifest& manifest) {
  for (const SplitInfo& split : manifest.splits) {
    absl::PrintF("  %-12s %12d documents %14d tokens\n", split.name, split.documents, split.tokens);
    if (split.packed.has_value()) PrintPacked(*split.packed, split, *manifest.packing);
    for (const GroupInfo& group : split.groups) {
      absl::PrintF("    %-24s %12d documents %14d tokens %7.3f%% of them, weight %.3f%%\n", group.name, group.documents,
                   group.tokens, Percent(group.tokens, split.tokens), 100 * group.weight);
    }
  }
  absl::PrintF("  tokenizer    %s, vocabulary %d\n", manifest.tokenizer, manifest.vocabulary_size);
  absl::PrintF("  unigram      %.4f nats a token (the loss of the best model without context)\n",
               manifest.unigram_entropy);
}

}  // namespace llmctl::data
