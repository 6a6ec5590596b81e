// The documents of a segment that earlier passes of deduplication have left.
//
// A pass numbers the documents that came to it, in input order: its own numbers, since what an earlier pass dropped
// never came. Paragraphs and lines that were repeats are gone from the text.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "worker/data/pipeline/document_record.h"
#include "worker/data/pipeline/workspace.h"

namespace llmctl::data {

// Before the first pass documents go that are in a bucket of perplexity which is not kept, where the buckets follow
// from the whole corpus: that is pass -1.
//
// Why a document did not survive.
struct Loss {
  enum class Kind { kPerplexity, kExact, kNear };
  Kind kind = Kind::kExact;
  int pass = 0;
  uint64_t number = 0;    // of the document, in that pass
  uint64_t kept = 0;      // of the document that was kept instead, in the numbers of the pass
  uint64_t match = 0;     // near: of the one by way of which it was found
  double kept_jaccard = 0;
  double match_jaccard = 0;
  PerplexityVerdict perplexity;
};

// Single-threaded. Keeps the results of the passes open: reading segments in ascending order reads them once.
class Survivors {
 public:
  // Of the first `passes` passes.
  static absl::StatusOr<std::unique_ptr<Survivors>> Open(const Workspace& workspace,
                                                         const std::vector<Segment>& segments, int passes);

  // Documents in order, each with its number among all of the segment; `text` may be moved from. Lost ones come with an
  // empty text and their loss.
  using Take = absl::FunctionRef<absl::Status(uint64_t index, const DocumentRecord& document, std::string& text,
                                              const Loss* loss)>;
  absl::Status ForEach(size_t segment, Take take);

 private:
  Survivors(const Workspace& workspace, const std::vector<Segment>& segments)
      : workspace_(workspace), segments_(segments) {}
  // False if the document is lost.
  absl::StatusOr<bool> Apply(size_t pass, uint64_t number, std::string& text, Loss& loss);

  absl::Status ReadPerplexities();
  bool KeepsPerplexity(const DocumentRecord& document, Loss& loss) const;

  const Workspace& workspace_;
  const std::vector<Segment> segments_;
  // Where buckets are to be kept that follow from the corpus.
  std::optional<PerplexitySettings> perplexity_;
  std::map<std::string, PerplexityCutoffs> cutoffs_;
  struct ExactPass {
    ExactSettings settings;
    RepeatReader reader;
  };
  std::vector<ExactPass> exact_;
  std::unique_ptr<DuplicateReader> near_;
  std::vector<Repeat> repeats_;
  std::vector<uint64_t> units_;
};

// Passes of a specification: units compared exactly, and then near duplicates.
int DedupPasses(const contract::CorpusConfig& config);

}  // namespace llmctl::data
