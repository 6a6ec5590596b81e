// The parts of an input whose first tasks are finished, and the files that those left.
//
//   part-N/<kind>-K   files of the part
//   part-N/part       lists them with what identifies them: written last, the part is finished with it
//
// Parts follow each other in input order and number their documents from 0; here they get the numbers they have in the
// whole input.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "worker/data/spill/external_sort.h"
#include "worker/data/spill/record_file.h"

namespace llmctl::data {

// One part: its folder and what its files are made from.
struct PartPlace {
  std::string folder;
  std::string digest;

  std::string Path(RecordKind kind, uint64_t run) const;
};

// A part in `folder`, made from what `made_from` says.
PartPlace PlaceOfPart(const std::string& folder, size_t part, absl::string_view made_from);

struct ListedFile {
  uint64_t kind;
  uint64_t run;
  uint64_t identity;
};

// What a part's task counts.
struct PartCounts {
  uint64_t documents = 0;
  uint64_t without_signature = 0;
  // A polynomial over hashes of the texts: for a whole input it does not depend on how it was cut.
  uint64_t content = 0;

  void Add(absl::string_view text);
};

bool PartIsFinished(SpillFiles& files, const PartPlace& place);
absl::Status FinishPart(SpillFiles& files, const PartPlace& place, const std::vector<ListedFile>& list,
                        const PartCounts& counts);

class InputParts {
 public:
  // FailedPrecondition if a part is not finished; `what` names the work in messages.
  static absl::StatusOr<InputParts> Open(SpillFiles& files, std::vector<PartPlace> places, absl::string_view what);

  uint64_t documents() const { return first_documents_.back(); }
  uint64_t without_signature() const { return without_signature_; }
  // Per part, and the number of all documents at the end.
  const std::vector<uint64_t>& first_documents() const { return first_documents_; }
  size_t PartOf(uint64_t document) const;

  // One section of every file of that type (its digest is not looked at), as runs to merge.
  std::vector<SortedRun> Runs(const RecordFileType& type, size_t section) const;
  // The only file of that type of a part.
  absl::StatusOr<RecordFile> OpenFile(SpillFiles& files, size_t part, const RecordFileType& type) const;

  // For files made from these parts: says which texts, not how they were cut into parts.
  std::string DigestFor(absl::string_view what) const;

 private:
  struct Part {
    PartPlace place;
    std::vector<ListedFile> files;
  };

  absl::Status OpenPart(SpillFiles& files, PartPlace place, absl::string_view what);
  SortedRun RunOf(size_t part, const ListedFile& listed, const RecordFileType& type) const;

  std::vector<Part> parts_;
  std::vector<uint64_t> first_documents_ = {0};
  uint64_t without_signature_ = 0;
  uint64_t content_ = 0;
};

}  // namespace llmctl::data
