// The stage that makes tokens of what is left of each segment.
//
//   TTTTTT-SSSS.<group>.tokens   documents of a group, in order: hash of the text, tokens
//   TTTTTT-SSSS.losses           documents that deduplication dropped
//   TTTTTT-SSSS.index            what groups there are; written last
//
// A group is a source, or a source and a language: what is mixed. Documents of a group lie together in the dataset.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

#include "worker/data/pipeline/block_file.h"
#include "worker/data/pipeline/stage.h"
#include "worker/data/pipeline/survivors.h"
#include "worker/data/pipeline/tally.h"
#include "worker/data/pipeline/workspace.h"
#include "worker/data/tokenizer/tokenizer.h"

namespace llmctl::data {

struct GroupTokens {
  int64_t documents = 0;
  int64_t tokens = 0;  // ends of documents included
  SizeHistogram lengths;
};

// Of a segment.
struct EncodedSegment {
  std::map<std::string, GroupTokens> groups;
  // What deduplication dropped, and what was kept in the end.
  Tally tally;
};
absl::StatusOr<EncodedSegment> ReadEncodedSegment(const Workspace& workspace, const Segment& segment);

// A document that deduplication dropped: its number among those of its segment, and the loss with numbers of the pass.
struct LossRecord {
  uint64_t index = 0;
  Loss loss;
};
absl::StatusOr<std::vector<LossRecord>> ReadLosses(const Workspace& workspace, const Segment& segment);

// The documents of a group in a segment.
class TokenReader {
 public:
  static absl::StatusOr<TokenReader> Open(const Workspace& workspace, const Segment& segment,
                                          const std::string& group);
  // False at the end. The last token is the end of the document.
  absl::StatusOr<bool> Next(uint64_t& hash, std::vector<int32_t>& tokens);

 private:
  explicit TokenReader(std::unique_ptr<BlockFileReader> file) : file_(std::move(file)) {}
  std::unique_ptr<BlockFileReader> file_;
};

// `tokenizer` and `workspace` outlive it.
std::unique_ptr<Stage> MakeEncodeStage(const Workspace& workspace, std::vector<Segment> segments,
                                       const Tokenizer& tokenizer);

}  // namespace llmctl::data
