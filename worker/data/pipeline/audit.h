// What was said of every record, read again: for the rejects file and for questions.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "worker/data/pipeline/document_record.h"
#include "worker/data/pipeline/survivors.h"
#include "worker/data/pipeline/workspace.h"

namespace llmctl::data {

class Audit {
 public:
  // `workspace` outlives it.
  static absl::StatusOr<Audit> Open(const Workspace& workspace);

  const std::vector<Segment>& segments() const { return segments_; }

  // Every record of a segment, in the order of the input. `kept` counts the records that the cleaning stages kept, from
  // 0 in each segment: the number of the document among those of the segment. Ends when `take` gives false.
  using Take = absl::FunctionRef<absl::StatusOr<bool>(const VerdictRecord& verdict, uint64_t kept)>;
  absl::Status ForEach(size_t segment, Take take) const;

  // "corpus.jsonl:17", with the line that it has in its file. A text file of one document is named without a line.
  // The documents of a segment that deduplication dropped, by their number in it.
  absl::StatusOr<std::map<uint64_t, Loss>> LossesOf(size_t segment) const;
  // Which document has this number in a pass of deduplication: its segment, and its number there.
  absl::StatusOr<std::pair<size_t, uint64_t>> DocumentOf(int pass, uint64_t number) const;

  std::string PlaceName(size_t segment, const DocumentPlace& place) const;
  int64_t LineInFile(size_t segment, const DocumentPlace& place) const;

 private:
  explicit Audit(const Workspace& workspace) : workspace_(&workspace) {}

  const Workspace* workspace_;
  std::vector<Segment> segments_;
  std::map<int, int64_t> lines_before_;  // of tasks that begin within a file
};

// A line for every record that could not be read: file, line, byte, reason.
absl::Status WriteRejects(const Workspace& workspace, const std::string& path);

}  // namespace llmctl::data
