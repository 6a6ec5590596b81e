// What one dataset has that another has not: documents compared by their content, wherever they lie.
//
// Hashes of all documents of both are sorted on disk and read side by side: time is that of reading both once. Memory
// is what it is told, and 48 bytes for each document that is as another one, or begins as it does. Tokens are compared
// where both have one tokenizer, decoded texts where they do not. In packed datasets pieces are compared, so that
// documents which were cut differ where their rows are of different lengths.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "worker/data/inspect/dataset_view.h"
#include "worker/data/spill/spill_files.h"

namespace llmctl::data {

struct DiffOptions {
  uint64_t memory_bytes = uint64_t{256} << 20;
  std::string folder;  // for files while it runs, 40 bytes a document; what it makes there is removed
  size_t examples_max = 5;  // of each kind
};

struct DatasetDiff {
  struct Place {
    std::string split;
    int64_t document = 0;
  };
  // `before` in the first dataset, `after` in the second.
  struct Change {
    Place before;
    Place after;
  };
  int64_t same = 0;     // in both, as often in one as in the other
  int64_t moved = 0;    // of these, in another split
  int64_t removed = 0;  // in the first only
  int64_t added = 0;    // in the second only
  int64_t changed = 0;  // one removed and one added that begin alike; not counted as either
  bool by_text = false;
  std::vector<Place> removed_examples;
  std::vector<Place> added_examples;
  std::vector<Change> changed_examples;
};

absl::StatusOr<DatasetDiff> DiffDatasets(const DatasetView& before, const DatasetView& after,
                                         const DiffOptions& options, SpillFiles& files);

}  // namespace llmctl::data
