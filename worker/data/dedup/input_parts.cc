#include "worker/data/dedup/input_parts.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "common/base/check.h"
#include "common/base/digest.h"
#include "common/base/status.h"

namespace llmctl::data {
namespace {

constexpr uint64_t kContentBase = 0xd1342543de82ef95;

uint64_t Power(uint64_t base, uint64_t exponent) {
  uint64_t result = 1;
  for (; exponent > 0; exponent >>= 1, base *= base) {
    if (exponent & 1) result *= base;
  }
  return result;
}

const char* FileName(RecordKind kind) {
  switch (kind) {
    case RecordKind::kPart: return "part";
    case RecordKind::kBandKeys: return "band-keys";
    case RecordKind::kTextKeys: return "text-keys";
    case RecordKind::kSketches: return "sketches";
    case RecordKind::kShingleSets: return "shingles";
    case RecordKind::kShingleStarts: return "shingle-starts";
    case RecordKind::kPairs: return "pairs";
    case RecordKind::kDuplicates: return "duplicates";
    case RecordKind::kRepeats: return "repeats";
    case RecordKind::kNgrams: break;  // not of deduplication
  }
  return "";
}

RecordFileType ListType(const PartPlace& place) { return {RecordKind::kPart, sizeof(ListedFile), place.digest}; }

bool IsKind(const ListedFile& listed, RecordKind kind) { return listed.kind == static_cast<uint64_t>(kind); }

}  // namespace

std::string PartPlace::Path(RecordKind kind, uint64_t run) const {
  return absl::StrFormat("%s/%s-%06d", folder, FileName(kind), run);
}

PartPlace PlaceOfPart(const std::string& folder, size_t part, absl::string_view made_from) {
  return {absl::StrFormat("%s/part-%06d", folder, part), DigestOf(made_from)};
}

void PartCounts::Add(absl::string_view text) {
  content = content * kContentBase + Fingerprint64(text);
  ++documents;
}

bool PartIsFinished(SpillFiles& files, const PartPlace& place) {
  return RecordFile::Open(files, place.Path(RecordKind::kPart, 0), ListType(place)).ok();
}

absl::Status FinishPart(SpillFiles& files, const PartPlace& place, const std::vector<ListedFile>& list,
                        const PartCounts& counts) {
  LLM_ASSIGN_OR_RETURN(RecordFileWriter out,
                       RecordFileWriter::Create(files, place.Path(RecordKind::kPart, 0), ListType(place)));
  LLM_RETURN_IF_ERROR(out.Append(list.data(), list.size()));
  return out.Commit({counts.documents, counts.without_signature, counts.content}).status();
}

absl::StatusOr<InputParts> InputParts::Open(SpillFiles& files, std::vector<PartPlace> places, absl::string_view what) {
  InputParts parts;
  for (PartPlace& place : places) LLM_RETURN_IF_ERROR(parts.OpenPart(files, std::move(place), what));
  return parts;
}

absl::Status InputParts::OpenPart(SpillFiles& files, PartPlace place, absl::string_view what) {
  absl::StatusOr<RecordFile> list = RecordFile::Open(files, place.Path(RecordKind::kPart, 0), ListType(place));
  if (absl::IsNotFound(list.status())) {
    return absl::FailedPreconditionError(absl::StrCat(what, ": the first task of part ", parts_.size(),
                                                      " is not finished; run it first (", list.status().message(),
                                                      ")"));
  }
  LLM_RETURN_IF_ERROR(list.status());
  Part part{std::move(place), std::vector<ListedFile>(list->records())};
  SectionReader reader(*list, 0);
  LLM_RETURN_IF_ERROR(reader.Read(part.files.data(), part.files.size()).status());
  const PartCounts counts{list->notes()[0], list->notes()[1], list->notes()[2]};
  without_signature_ += counts.without_signature;
  content_ = content_ * Power(kContentBase, counts.documents) + counts.content;
  first_documents_.push_back(first_documents_.back() + counts.documents);
  parts_.push_back(std::move(part));
  return absl::OkStatus();
}

size_t InputParts::PartOf(uint64_t document) const {
  CHECK_LT(document, documents()) << "a document of the input";
  return std::upper_bound(first_documents_.begin(), first_documents_.end(), document) - first_documents_.begin() - 1;
}

SortedRun InputParts::RunOf(size_t part, const ListedFile& listed, const RecordFileType& type) const {
  const PartPlace& place = parts_[part].place;
  return {place.Path(type.kind, listed.run), {type.kind, type.record_bytes, place.digest}, 0, first_documents_[part],
          listed.identity};
}

std::vector<SortedRun> InputParts::Runs(const RecordFileType& type, size_t section) const {
  std::vector<SortedRun> runs;
  for (size_t part = 0; part < parts_.size(); ++part) {
    for (const ListedFile& listed : parts_[part].files) {
      if (!IsKind(listed, type.kind)) continue;
      runs.push_back(RunOf(part, listed, type));
      runs.back().section = section;
    }
  }
  return runs;
}

absl::StatusOr<RecordFile> InputParts::OpenFile(SpillFiles& files, size_t part, const RecordFileType& type) const {
  auto listed = std::find_if(parts_[part].files.begin(), parts_[part].files.end(),
                             [&](const ListedFile& file) { return IsKind(file, type.kind); });
  CHECK(listed != parts_[part].files.end()) << "settings that keep no such file";
  return OpenRun(files, RunOf(part, *listed, type));
}

std::string InputParts::DigestFor(absl::string_view what) const {
  return DigestOf(absl::StrCat(what, "; ", documents(), " documents ", absl::Hex(content_)));
}

}  // namespace llmctl::data
