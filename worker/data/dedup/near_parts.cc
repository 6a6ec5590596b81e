#include "worker/data/dedup/near_parts.h"

#include <string>

#include "absl/strings/str_cat.h"

#include "common/base/digest.h"
#include "common/base/status.h"
#include "worker/data/dedup/sketch.h"
#include "worker/data/dedup/sorted_records.h"

namespace llmctl::data {
namespace {

constexpr size_t kOpenFilesMax = 128;

}  // namespace

PartPlace PlaceOfNearPart(const NearPlan& plan, size_t part) {
  return PlaceOfPart(plan.folder, part,
                     absl::StrCat("near; ", SignatureText(plan.settings), "; ", plan.part_digests[part]));
}

RecordFileType NearFileType(const NearSettings& settings, RecordKind kind) {
  switch (kind) {
    case RecordKind::kBandKeys:
      return {kind, sizeof(KeyedDocument), ""};
    case RecordKind::kTextKeys:
      return {kind, sizeof(TextKey), ""};
    case RecordKind::kSketches:
      return {kind, static_cast<uint32_t>(SketchBytes(settings.bands * settings.rows)), ""};
    case RecordKind::kShingleSets:
      return {kind, sizeof(uint32_t), ""};
    default:
      return {kind, sizeof(uint64_t), ""};
  }
}

absl::StatusOr<NearParts> NearParts::Open(const NearPlan& plan, SpillFiles& files) {
  std::vector<PartPlace> places;
  for (size_t part = 0; part < plan.part_digests.size(); ++part) places.push_back(PlaceOfNearPart(plan, part));
  LLM_ASSIGN_OR_RETURN(InputParts input, InputParts::Open(files, std::move(places), "near deduplication"));
  return NearParts(plan, files, std::move(input));
}

absl::StatusOr<const RecordFile*> NearParts::FileOf(RecordKind kind, uint64_t document) {
  const FileKey key{kind, input_.PartOf(document)};
  if (auto known = open_.find(key); known != open_.end()) return known->second.get();
  LLM_ASSIGN_OR_RETURN(RecordFile file, input_.OpenFile(files_, key.second, NearFileType(settings_, kind)));
  if (open_order_.size() == kOpenFilesMax) {
    open_.erase(open_order_.front());
    open_order_.pop_front();
  }
  open_order_.push_back(key);
  return open_.emplace(key, std::make_unique<RecordFile>(std::move(file))).first->second.get();
}

absl::Status NearParts::ReadSketch(uint64_t document, std::vector<uint8_t>& out) {
  LLM_ASSIGN_OR_RETURN(const RecordFile* file, FileOf(RecordKind::kSketches, document));
  const uint64_t in_part = document - input_.first_documents()[input_.PartOf(document)];
  out.resize(file->record_bytes());
  LLM_RETURN_IF_ERROR(file->Read(in_part, 1, out.data()));
  if (SketchIsWhole(out)) return absl::OkStatus();
  return file->Damaged(absl::StrCat("the checksum of sketch ", in_part, " does not hold"));
}

absl::Status NearParts::ReadShingles(uint64_t document, std::vector<uint32_t>& out) {
  const uint64_t in_part = document - input_.first_documents()[input_.PartOf(document)];
  uint64_t range[2];
  LLM_ASSIGN_OR_RETURN(const RecordFile* starts, FileOf(RecordKind::kShingleStarts, document));
  LLM_RETURN_IF_ERROR(starts->Read(in_part, 2, range));
  LLM_ASSIGN_OR_RETURN(const RecordFile* file, FileOf(RecordKind::kShingleSets, document));
  if (range[0] >= range[1] || range[1] > file->records()) {
    return file->Damaged(absl::StrCat("document ", in_part, " is said to have numbers ", range[0], " to ", range[1],
                                      " of ", file->records()));
  }
  out.resize(range[1] - range[0]);
  LLM_RETURN_IF_ERROR(file->Read(range[0], out.size(), out.data()));
  const uint32_t checksum = out[0];
  out.erase(out.begin());
  uint64_t found = Fingerprint64({reinterpret_cast<const char*>(out.data()), out.size() * sizeof(uint32_t)});
  if (static_cast<uint32_t>(found) == checksum) return absl::OkStatus();
  return file->Damaged(absl::StrCat("the checksum of shingle set ", in_part, " does not hold"));
}

}  // namespace llmctl::data
